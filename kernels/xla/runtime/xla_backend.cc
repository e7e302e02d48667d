#include "kernels/xla/runtime/xla_backend.h"

#include <malloc.h>

#include <algorithm>
#include <utility>

#include "kernels/backend/op_sequence.h"
#include "kernels/xla/pjrt/plugin_file.h"
#include "kernels/xla/runtime/xla_executable.h"

namespace troupe::kernels::xla {

namespace {

Status CheckSlice(const Client& client, const Slice& slice) {
  const auto devices = static_cast<int>(client.devices().size());
  for (size_t p = 0; p < slice.devices.size(); ++p) {
    const int device = slice.devices[p];
    if (device < 0 || device >= devices) {
      return InvalidArgument("XLA device {} is asked for, and the plugin {} has {}", device,
                             client.plugin().path, devices);
    }
    if (std::find(slice.devices.begin(), slice.devices.begin() + p, device) !=
        slice.devices.begin() + p)
      return InvalidArgument("XLA device {} is in a slice twice", device);
  }
  if (slice.partition < 0 || slice.partition >= std::ssize(slice.devices)) {
    return InvalidArgument("a slice of {} devices has no partition {}", slice.devices.size(),
                           slice.partition);
  }
  if (!client.devices()[slice.devices[slice.partition]].addressable) {
    return InvalidArgument("XLA device {} of partition {} belongs to another process",
                           slice.devices[slice.partition], slice.partition);
  }
  const size_t programs = slice.programs == nullptr ? 1 : slice.programs->size();
  if (programs != slice.devices.size()) {
    return InvalidArgument("a slice has {} devices and {} programs", slice.devices.size(),
                           programs);
  }
  return OkStatus();
}

// The programs of the slice with `program` as that of this rank.
StatusOr<StagePrograms> ProgramsOf(const Slice& slice, const model::Program& program) {
  if (slice.programs == nullptr) return StagePrograms::Make({&program});
  std::vector<const model::Program*> programs;
  for (const model::Program& of_rank : *slice.programs) programs.push_back(&of_rank);
  if (ToText(program) != ToText(*programs[slice.partition])) {
    return InvalidArgument("the program of partition {} of the slice is another than is prepared",
                           slice.partition);
  }
  programs[slice.partition] = &program;
  return StagePrograms::Make(std::move(programs));
}

}  // namespace

StatusOr<std::unique_ptr<XlaBackend>> XlaBackend::Make(ProgramCache& programs,
                                                       const XlaOptions& options) {
  TROUPE_RETURN_IF_ERROR(CheckSlice(programs.client(), options.slice));
  TROUPE_ASSIGN_OR_RETURN(auto host, CpuBackend::Make({options.threads, std::nullopt}));
  return std::unique_ptr<XlaBackend>(new XlaBackend(programs, options, std::move(host)));
}

StatusOr<std::unique_ptr<XlaBackend>> XlaBackend::Make(std::unique_ptr<Client> client,
                                                       std::unique_ptr<ProgramCache> programs,
                                                       const XlaOptions& options) {
  TROUPE_ASSIGN_OR_RETURN(auto backend, Make(*programs, options));
  backend->owned_client_ = std::move(client);
  backend->owned_programs_ = std::move(programs);
  return backend;
}

bool XlaBackend::releases_device() const {
  const PluginFacts& plugin = programs_.client().plugin();
  return plugin.platform == "cpu" && !FileWasReplaced(plugin);
}

std::string XlaBackend::kernel_level() const {
  const Client& client = programs_.client();
  const PluginFacts& plugin = client.plugin();
  const std::string& kind = client.devices()[options_.slice.devices[options_.slice.partition]].kind;
  // The plugin for processors has the same words for both.
  const std::string version = kind == plugin.platform_version ? "" : " " + plugin.platform_version;
  return fmt::format("xla {}{}, PJRT {}.{}", kind, version, plugin.api_major, plugin.api_minor);
}

StatusOr<std::unique_ptr<Executable>> XlaBackend::Prepare(
    const model::Program& program, const model::MemoryPlan& plan,
    const FindCommunicator& find_communicator) {
  const Slice& slice = options_.slice;
  TROUPE_ASSIGN_OR_RETURN(StagePrograms stage, ProgramsOf(slice, program));
  bool uses_host = false;
  ExecutedMatmuls matmuls;
  ForEachOp(program, [&](const model::Op& op) {
    uses_host =
        uses_host || (CommunicatorOf(op, find_communicator) != nullptr && !stage.IsWithin(op));
    if (!IsMatmul(op.kind)) return;
    matmuls.Note(program, op, program.value(op.inputs[0]).dtype, program.value(op.inputs[1]).dtype);
  });
  ExecutableOptions options{.programs = &programs_,
                            .stage = std::move(stage),
                            .owned = slice.programs,
                            .partition = slice.partition,
                            .devices = slice.devices,
                            .use = options_.use,
                            .threads = options_.threads,
                            .host = nullptr,
                            .find_communicator = find_communicator};
  if (uses_host) {
    TROUPE_ASSIGN_OR_RETURN(options.host, host_->Prepare(program, plan, find_communicator));
  }
  auto executable = std::make_unique<XlaExecutable>(program, plan, std::move(options));
  TROUPE_RETURN_IF_ERROR(executable->Compile());
  // The compiler needs more memory than the programs that it made.
  if (programs_.compilation().compiled > 0) malloc_trim(0);
  executed_matmuls_ = matmuls.List();
  return std::unique_ptr<Executable>(std::move(executable));
}

}  // namespace troupe::kernels::xla
