#include "kernels/xla/runtime/xla_backend.h"

#include <utility>

#include "kernels/backend/op_sequence.h"
#include "kernels/xla/runtime/xla_executable.h"

namespace troupe::kernels::xla {

StatusOr<std::unique_ptr<XlaBackend>> XlaBackend::Make(ProgramCache& programs,
                                                       const XlaOptions& options) {
  const Client& client = programs.client();
  const auto devices = static_cast<int>(client.devices().size());
  if (options.device < 0 || options.device >= devices) {
    return InvalidArgument("XLA device {} is asked for, and the plugin {} has {}", options.device,
                           client.plugin().path, devices);
  }
  TROUPE_ASSIGN_OR_RETURN(auto host, CpuBackend::Make({options.threads, std::nullopt}));
  return std::unique_ptr<XlaBackend>(new XlaBackend(programs, options, std::move(host)));
}

std::string XlaBackend::kernel_level() const {
  const Client& client = programs_.client();
  const PluginFacts& plugin = client.plugin();
  return fmt::format("xla {} {}, PJRT {}.{}", client.devices()[options_.device].kind,
                     plugin.platform_version, plugin.api_major, plugin.api_minor);
}

StatusOr<std::unique_ptr<Executable>> XlaBackend::Prepare(
    const model::Program& program, const model::MemoryPlan& plan,
    const FindCommunicator& find_communicator) {
  bool has_collectives = false;
  ExecutedMatmuls matmuls;
  ForEachOp(program, [&](const model::Op& op) {
    has_collectives = has_collectives || CommunicatorOf(op, find_communicator) != nullptr;
    if (!IsMatmul(op.kind)) return;
    matmuls.Note(program, op, program.value(op.inputs[0]).dtype, program.value(op.inputs[1]).dtype);
  });
  ExecutableOptions options{
      .programs = &programs_, .device = options_.device, .find_communicator = find_communicator};
  if (has_collectives) {
    TROUPE_ASSIGN_OR_RETURN(options.host, host_->Prepare(program, plan, find_communicator));
  }
  auto executable = std::make_unique<XlaExecutable>(program, plan, std::move(options));
  TROUPE_RETURN_IF_ERROR(executable->Compile());
  executed_matmuls_ = matmuls.List();
  return std::unique_ptr<Executable>(std::move(executable));
}

}  // namespace troupe::kernels::xla
