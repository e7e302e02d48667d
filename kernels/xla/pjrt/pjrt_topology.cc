#include <pjrt_c_api.h>

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "kernels/xla/pjrt/call.h"
#include "kernels/xla/pjrt/compilation.h"
#include "kernels/xla/pjrt/compile_options.h"
#include "kernels/xla/pjrt/device_facts.h"
#include "kernels/xla/pjrt/hlo_collectives.h"
#include "kernels/xla/pjrt/plugin.h"
#include "kernels/xla/pjrt/topology.h"

namespace troupe::kernels::xla {
namespace {

// A chip of TPU v4 is one device to a client, but two in a topology unless an option joins them.
constexpr std::string_view kTwoCoreChips = "v4:", kChipOption = "chip_config_name",
                           kOneDevice = "megacore";

// Formats of optimized programs.
constexpr std::string_view kHlo = "hlo", kHloWithConfig = "hlo_with_config";

class PjrtTopology final : public Topology {
 public:
  // Takes `topology`.
  PjrtTopology(const PJRT_Api& api, PJRT_TopologyDescription* topology)
      : api_(api), topology_(topology) {}
  ~PjrtTopology() override;
  PjrtTopology(const PjrtTopology&) = delete;
  PjrtTopology& operator=(const PjrtTopology&) = delete;

  // Asks the plugin for what plugin() and devices() return.
  Status Describe(const std::string& path);

  const PluginFacts& plugin() const override { return plugin_; }
  const std::vector<DeviceFacts>& devices() const override { return devices_; }
  StatusOr<CompiledProgram> Compile(std::string_view text, const Options& options,
                                    std::span<const int> devices) override;

 private:
  const PJRT_Api& api_;
  PJRT_TopologyDescription* const topology_;
  PluginFacts plugin_;
  std::vector<DeviceFacts> devices_;
};

PjrtTopology::~PjrtTopology() {
  TROUPE_PJRT_ARGUMENTS(PJRT_TopologyDescription_Destroy_Args, destroy);
  destroy.topology = topology_;
  TakeStatus(api_, api_.PJRT_TopologyDescription_Destroy(&destroy)).IgnoreError();
}

Status PjrtTopology::Describe(const std::string& path) {
  plugin_.path = path;
  plugin_.api_major = api_.pjrt_api_version.major_version;
  plugin_.api_minor = api_.pjrt_api_version.minor_version;
  TROUPE_PJRT_ARGUMENTS(PJRT_TopologyDescription_PlatformName_Args, name);
  name.topology = topology_;
  TROUPE_RETURN_IF_ERROR(TakeStatus(api_, api_.PJRT_TopologyDescription_PlatformName(&name)));
  plugin_.platform.assign(name.platform_name, name.platform_name_size);
  TROUPE_PJRT_ARGUMENTS(PJRT_TopologyDescription_PlatformVersion_Args, version);
  version.topology = topology_;
  TROUPE_RETURN_IF_ERROR(TakeStatus(api_, api_.PJRT_TopologyDescription_PlatformVersion(&version)));
  plugin_.platform_version.assign(version.platform_version, version.platform_version_size);
  std::ranges::replace(plugin_.platform_version, '\n', ' ');

  TROUPE_PJRT_ARGUMENTS(PJRT_TopologyDescription_GetDeviceDescriptions_Args, get);
  get.topology = topology_;
  TROUPE_RETURN_IF_ERROR(
      TakeStatus(api_, api_.PJRT_TopologyDescription_GetDeviceDescriptions(&get)));
  for (size_t d = 0; d < get.num_descriptions; ++d) {
    TROUPE_ASSIGN_OR_RETURN(DeviceFacts facts, ReadDeviceFacts(api_, get.descriptions[d]));
    devices_.push_back(std::move(facts));
  }
  return devices_.empty() ? NotFound("it has no device") : OkStatus();
}

StatusOr<CompiledMemory> MemoryOf(const PJRT_Api& api, PJRT_Executable* executable) {
  TROUPE_PJRT_ARGUMENTS(PJRT_Executable_GetCompiledMemoryStats_Args, memory);
  memory.executable = executable;
  TROUPE_RETURN_IF_ERROR(TakeStatus(api, api.PJRT_Executable_GetCompiledMemoryStats(&memory)));
  return CompiledMemory{.code = memory.generated_code_size_in_bytes,
                        .arguments = memory.argument_size_in_bytes,
                        .results = memory.output_size_in_bytes,
                        .aliased = memory.alias_size_in_bytes,
                        .temporary = memory.temp_size_in_bytes};
}

StatusOr<xla_messages::HloModule> OptimizedProgram(const PJRT_Api& api,
                                                   PJRT_Executable* executable) {
  TROUPE_PJRT_ARGUMENTS(PJRT_Program, program);
  TROUPE_PJRT_ARGUMENTS(PJRT_Executable_OptimizedProgram_Args, get);
  get.executable = executable;
  get.program = &program;
  TROUPE_RETURN_IF_ERROR(TakeStatus(api, api.PJRT_Executable_OptimizedProgram(&get)));
  std::string bytes(program.code_size, '\0');
  program.code = bytes.data();
  TROUPE_RETURN_IF_ERROR(TakeStatus(api, api.PJRT_Executable_OptimizedProgram(&get)));
  const std::string_view format(program.format, program.format_size);
  if (format == kHlo) return ParseHloModule(bytes);
  if (format == kHloWithConfig) return ParseHloModuleWithConfig(bytes);
  return Unimplemented("the optimized program is \"{}\", not \"{}\" or \"{}\"", format, kHlo,
                       kHloWithConfig);
}

StatusOr<CompiledProgram> DescribeProgram(const PJRT_Api& api, PJRT_Executable* executable) {
  TROUPE_ASSIGN_OR_RETURN(const CompiledMemory memory, MemoryOf(api, executable));
  TROUPE_ASSIGN_OR_RETURN(const xla_messages::HloModule optimized,
                          OptimizedProgram(api, executable));
  return CompiledProgram{memory, CountCollectives(optimized)};
}

StatusOr<CompiledProgram> PjrtTopology::Compile(std::string_view text, const Options& options,
                                                std::span<const int> devices) {
  std::vector<int> ids;
  for (const int device : devices) {
    TROUPE_CHECK(device >= 0 && device < std::ssize(devices_), "device {} of {}", device,
                 devices_.size());
    ids.push_back(devices_[device].id);
  }
  const PJRT_Program program = MlirProgram(text);
  const std::string bytes = CompileOptionBytes(WithExactNumbers(plugin_.platform, options), ids);
  TROUPE_PJRT_ARGUMENTS(PJRT_Compile_Args, compile);
  compile.topology = topology_;
  compile.program = &program;
  compile.compile_options = bytes.data();
  compile.compile_options_size = bytes.size();
  TROUPE_RETURN_IF_ERROR(CompileStatus(TakeStatus(api_, api_.PJRT_Compile(&compile))));
  StatusOr<CompiledProgram> compiled = DescribeProgram(api_, compile.executable);
  TROUPE_PJRT_ARGUMENTS(PJRT_Executable_Destroy_Args, destroy);
  destroy.executable = compile.executable;
  TROUPE_RETURN_IF_ERROR(TakeStatus(api_, api_.PJRT_Executable_Destroy(&destroy)));
  return compiled;
}

}  // namespace

StatusOr<std::unique_ptr<Topology>> Topology::Make(const std::string& path,
                                                   const std::string& name) {
  TROUPE_ASSIGN_OR_RETURN(const LoadedPlugin plugin, LoadPlugin(path, 0));
  const PJRT_Api* const api = plugin.api;
  TROUPE_PJRT_ARGUMENTS(PJRT_TopologyDescription_Create_Args, create);
  create.topology_name = name.data();
  create.topology_name_size = name.size();
  TROUPE_PJRT_ARGUMENTS(PJRT_NamedValue, option);
  option.name = kChipOption.data();
  option.name_size = kChipOption.size();
  option.type = PJRT_NamedValue_kString;
  option.string_value = kOneDevice.data();
  option.value_size = kOneDevice.size();
  if (name.starts_with(kTwoCoreChips)) {
    create.create_options = &option;
    create.num_options = 1;
  }
  Status status = TakeStatus(*api, api->PJRT_TopologyDescription_Create(&create));
  if (status.ok()) {
    auto topology = std::make_unique<PjrtTopology>(*api, create.topology);
    status = topology->Describe(path);
    if (status.ok()) return topology;
  }
  return InvalidArgument("the plugin of XLA {} describes no devices \"{}\": {}", path, name,
                         Message(status));
}

}  // namespace troupe::kernels::xla
