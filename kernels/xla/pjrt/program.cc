#include "kernels/xla/pjrt/program.h"

#include <cstddef>
#include <utility>

#include "base/check.h"
#include "kernels/xla/pjrt/buffer.h"
#include "kernels/xla/pjrt/call.h"

namespace troupe::kernels::xla {
namespace {

// Calls `use` with what `executable` is loaded from.
template <typename Use>
Status WithExecutable(const PJRT_Api& api, PJRT_LoadedExecutable* executable, const Use& use) {
  TROUPE_PJRT_ARGUMENTS(PJRT_LoadedExecutable_GetExecutable_Args, get);
  get.loaded_executable = executable;
  TROUPE_RETURN_IF_ERROR(TakeStatus(api, api.PJRT_LoadedExecutable_GetExecutable(&get)));
  const Status used = use(get.executable);
  TROUPE_PJRT_ARGUMENTS(PJRT_Executable_Destroy_Args, destroy);
  destroy.executable = get.executable;
  const Status destroyed = TakeStatus(api, api.PJRT_Executable_Destroy(&destroy));
  return used.ok() ? destroyed : used;
}

// Returns the sizes of the results as the host sees them.
StatusOr<std::vector<int64_t>> ResultBytes(const PJRT_Api& api, PJRT_Executable* executable) {
  TROUPE_PJRT_ARGUMENTS(PJRT_Executable_OutputElementTypes_Args, types);
  types.executable = executable;
  TROUPE_RETURN_IF_ERROR(TakeStatus(api, api.PJRT_Executable_OutputElementTypes(&types)));
  TROUPE_PJRT_ARGUMENTS(PJRT_Executable_OutputDimensions_Args, dimensions);
  dimensions.executable = executable;
  TROUPE_RETURN_IF_ERROR(TakeStatus(api, api.PJRT_Executable_OutputDimensions(&dimensions)));
  std::vector<int64_t> sizes(types.num_output_types);
  const int64_t* dim = dimensions.dims;
  for (size_t result = 0; result < sizes.size(); ++result) {
    sizes[result] = BytesOf(types.output_types[result]);
    if (sizes[result] == 0) {
      return Unimplemented("result {} has elements of PJRT's type {}, which are no whole bytes",
                           result, static_cast<int>(types.output_types[result]));
    }
    for (size_t d = 0; d < dimensions.dim_sizes[result]; ++d) sizes[result] *= *dim++;
  }
  return sizes;
}

}  // namespace

StatusOr<std::unique_ptr<Program>> PjrtProgram::Make(const PJRT_Api& api,
                                                     PJRT_LoadedExecutable* executable,
                                                     std::vector<PJRT_Device*> devices,
                                                     bool loaded) {
  std::unique_ptr<PjrtProgram> program(
      new PjrtProgram(api, executable, std::move(devices), loaded));
  TROUPE_RETURN_IF_ERROR(WithExecutable(api, executable, [&](PJRT_Executable* unloaded) -> Status {
    TROUPE_ASSIGN_OR_RETURN(program->result_bytes_, ResultBytes(api, unloaded));
    return OkStatus();
  }));
  return program;
}

StatusOr<std::string> PjrtProgram::Serialize() const {
  std::string bytes;
  TROUPE_RETURN_IF_ERROR(
      WithExecutable(api_, executable_, [&](PJRT_Executable* unloaded) -> Status {
        TROUPE_PJRT_ARGUMENTS(PJRT_Executable_Serialize_Args, serialize);
        serialize.executable = unloaded;
        TROUPE_RETURN_IF_ERROR(TakeStatus(api_, api_.PJRT_Executable_Serialize(&serialize)));
        bytes.assign(serialize.serialized_bytes, serialize.serialized_bytes_size);
        serialize.serialized_executable_deleter(serialize.serialized_executable);
        return OkStatus();
      }));
  return bytes;
}

PjrtProgram::~PjrtProgram() {
  TROUPE_PJRT_ARGUMENTS(PJRT_LoadedExecutable_Destroy_Args, destroy);
  destroy.executable = executable_;
  TakeStatus(api_, api_.PJRT_LoadedExecutable_Destroy(&destroy)).IgnoreError();
}

StatusOr<std::vector<std::unique_ptr<Buffer>>> PjrtProgram::Run(
    std::span<const Buffer* const> arguments, const Launch& launch) {
  TROUPE_CHECK(launch.partition >= 0 && launch.partition < std::ssize(devices_),
               "partition {} of {}", launch.partition, devices_.size());
  std::vector<PJRT_Buffer*> inputs;
  inputs.reserve(arguments.size());
  for (const Buffer* const argument : arguments) {
    inputs.push_back(static_cast<const PjrtBuffer*>(argument)->pjrt());
  }
  std::vector<PJRT_Buffer*> outputs(result_bytes_.size());
  PJRT_Buffer* const* const input_list = inputs.data();
  PJRT_Buffer** const output_list = outputs.data();
  TROUPE_PJRT_ARGUMENTS(PJRT_ExecuteOptions, options);
  options.launch_id = launch.id;
  TROUPE_PJRT_ARGUMENTS(PJRT_LoadedExecutable_Execute_Args, execute);
  execute.executable = executable_;
  execute.options = &options;
  execute.argument_lists = &input_list;
  execute.num_devices = 1;
  execute.num_args = inputs.size();
  execute.output_lists = &output_list;
  // A plugin need not know the field: a program of one device runs where it was compiled for.
  if (devices_.size() > 1) execute.execute_device = devices_[launch.partition];
  TROUPE_RETURN_IF_ERROR(TakeStatus(api_, api_.PJRT_LoadedExecutable_Execute(&execute)));
  std::vector<std::unique_ptr<Buffer>> results;
  results.reserve(outputs.size());
  for (size_t result = 0; result < outputs.size(); ++result) {
    results.push_back(std::make_unique<PjrtBuffer>(api_, outputs[result], result_bytes_[result]));
  }
  return results;
}

}  // namespace troupe::kernels::xla
