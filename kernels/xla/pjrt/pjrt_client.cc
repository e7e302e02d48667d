#include "kernels/xla/pjrt/client.h"

#include <pjrt_c_api.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "kernels/xla/pjrt/buffer.h"
#include "kernels/xla/pjrt/call.h"
#include "kernels/xla/pjrt/compilation.h"
#include "kernels/xla/pjrt/compile_options.h"
#include "kernels/xla/pjrt/device_facts.h"
#include "kernels/xla/pjrt/plugin.h"
#include "kernels/xla/pjrt/program.h"

namespace troupe::kernels::xla {
namespace {

class PjrtClient final : public Client {
 public:
  // Takes `client`.
  PjrtClient(const PJRT_Api& api, PJRT_Client* client) : api_(api), client_(client) {}
  ~PjrtClient() override;
  PjrtClient(const PjrtClient&) = delete;
  PjrtClient& operator=(const PjrtClient&) = delete;

  // Asks the plugin for what plugin() and devices() return.
  Status Describe(const std::string& path, const std::string& file, int threads);

  const PluginFacts& plugin() const override { return plugin_; }
  const std::vector<DeviceFacts>& devices() const override { return device_facts_; }
  StatusOr<std::unique_ptr<Program>> Compile(std::string_view text, const Options& options,
                                             std::span<const int> devices) override;
  std::string OptionBytes(const Options& options, std::span<const int> devices) const override;
  StatusOr<std::unique_ptr<Program>> Load(std::string_view bytes,
                                          std::span<const int> devices) override;
  StatusOr<std::unique_ptr<Buffer>> Upload(model::DType dtype, std::span<const int64_t> dims,
                                           std::span<const std::byte> bytes, int device) override;

 private:
  std::vector<PJRT_Device*> DevicesOf(std::span<const int> devices) const;
  StatusOr<DeviceFacts> DescribeDevice(PJRT_Device* device) const;
  std::string DescribeTopology() const;

  const PJRT_Api& api_;
  PJRT_Client* const client_;
  PluginFacts plugin_;
  std::vector<PJRT_Device*> devices_;
  std::vector<DeviceFacts> device_facts_;
};

PjrtClient::~PjrtClient() {
  TROUPE_PJRT_ARGUMENTS(PJRT_Client_Destroy_Args, destroy);
  destroy.client = client_;
  TakeStatus(api_, api_.PJRT_Client_Destroy(&destroy)).IgnoreError();
}

Status PjrtClient::Describe(const std::string& path, const std::string& file, int threads) {
  plugin_.path = path;
  plugin_.file = file;
  plugin_.threads = threads;
  plugin_.topology = DescribeTopology();
  plugin_.api_major = api_.pjrt_api_version.major_version;
  plugin_.api_minor = api_.pjrt_api_version.minor_version;
  TROUPE_PJRT_ARGUMENTS(PJRT_Client_PlatformName_Args, name);
  name.client = client_;
  TROUPE_RETURN_IF_ERROR(TakeStatus(api_, api_.PJRT_Client_PlatformName(&name)));
  plugin_.platform.assign(name.platform_name, name.platform_name_size);
  TROUPE_PJRT_ARGUMENTS(PJRT_Client_PlatformVersion_Args, version);
  version.client = client_;
  TROUPE_RETURN_IF_ERROR(TakeStatus(api_, api_.PJRT_Client_PlatformVersion(&version)));
  plugin_.platform_version.assign(version.platform_version, version.platform_version_size);
  std::ranges::replace(plugin_.platform_version, '\n', ' ');

  TROUPE_PJRT_ARGUMENTS(PJRT_Client_Devices_Args, devices);
  devices.client = client_;
  TROUPE_RETURN_IF_ERROR(TakeStatus(api_, api_.PJRT_Client_Devices(&devices)));
  for (size_t d = 0; d < devices.num_devices; ++d) {
    devices_.push_back(devices.devices[d]);
    TROUPE_ASSIGN_OR_RETURN(DeviceFacts facts, DescribeDevice(devices_.back()));
    device_facts_.push_back(std::move(facts));
  }
  if (std::ranges::none_of(device_facts_, &DeviceFacts::addressable))
    return NotFound("the plugin finds no device");
  return OkStatus();
}

StatusOr<DeviceFacts> PjrtClient::DescribeDevice(PJRT_Device* device) const {
  TROUPE_PJRT_ARGUMENTS(PJRT_Device_GetDescription_Args, description);
  description.device = device;
  TROUPE_RETURN_IF_ERROR(TakeStatus(api_, api_.PJRT_Device_GetDescription(&description)));
  TROUPE_ASSIGN_OR_RETURN(DeviceFacts facts, ReadDeviceFacts(api_, description.device_description));
  TROUPE_PJRT_ARGUMENTS(PJRT_Device_IsAddressable_Args, addressable);
  addressable.device = device;
  TROUPE_RETURN_IF_ERROR(TakeStatus(api_, api_.PJRT_Device_IsAddressable(&addressable)));
  facts.addressable = addressable.is_addressable;
  if (!facts.addressable) return facts;
  TROUPE_PJRT_ARGUMENTS(PJRT_Device_MemoryStats_Args, memory);
  memory.device = device;
  const Status known = TakeStatus(api_, api_.PJRT_Device_MemoryStats(&memory));
  if (known.ok() && memory.bytes_limit_is_set) facts.memory_bytes = memory.bytes_limit;
  return facts;
}

std::string PjrtClient::DescribeTopology() const {
  TROUPE_PJRT_ARGUMENTS(PJRT_Client_TopologyDescription_Args, description);
  description.client = client_;
  if (!TakeStatus(api_, api_.PJRT_Client_TopologyDescription(&description)).ok()) return "";
  TROUPE_PJRT_ARGUMENTS(PJRT_TopologyDescription_Serialize_Args, serialize);
  serialize.topology = description.topology;
  if (!TakeStatus(api_, api_.PJRT_TopologyDescription_Serialize(&serialize)).ok()) return "";
  std::string bytes(serialize.serialized_bytes, serialize.serialized_bytes_size);
  serialize.serialized_topology_deleter(serialize.serialized_topology);
  return bytes;
}

std::vector<PJRT_Device*> PjrtClient::DevicesOf(std::span<const int> devices) const {
  std::vector<PJRT_Device*> chosen;
  for (const int device : devices) {
    TROUPE_CHECK(device >= 0 && device < std::ssize(devices_), "device {} of {}", device,
                 devices_.size());
    chosen.push_back(devices_[device]);
  }
  return chosen;
}

StatusOr<std::unique_ptr<Program>> PjrtClient::Compile(std::string_view text,
                                                       const Options& options,
                                                       std::span<const int> devices) {
  std::vector<PJRT_Device*> chosen = DevicesOf(devices);
  const PJRT_Program program = MlirProgram(text);
  const std::string bytes = OptionBytes(options, devices);
  TROUPE_PJRT_ARGUMENTS(PJRT_Client_Compile_Args, compile);
  compile.client = client_;
  compile.program = &program;
  compile.compile_options = bytes.data();
  compile.compile_options_size = bytes.size();
  TROUPE_RETURN_IF_ERROR(CompileStatus(TakeStatus(api_, api_.PJRT_Client_Compile(&compile))));
  return PjrtProgram::Make(api_, compile.executable, std::move(chosen), /*loaded=*/false);
}

std::string PjrtClient::OptionBytes(const Options& options, std::span<const int> devices) const {
  std::vector<int> ids;
  for (const int device : devices) ids.push_back(device_facts_[device].id);
  return CompileOptionBytes(WithExactNumbers(plugin_.platform, options), ids);
}

StatusOr<std::unique_ptr<Program>> PjrtClient::Load(std::string_view bytes,
                                                    std::span<const int> devices) {
  TROUPE_PJRT_ARGUMENTS(PJRT_Executable_DeserializeAndLoad_Args, load);
  load.client = client_;
  load.serialized_executable = bytes.data();
  load.serialized_executable_size = bytes.size();
  TROUPE_RETURN_IF_ERROR(TakeStatus(api_, api_.PJRT_Executable_DeserializeAndLoad(&load)));
  return PjrtProgram::Make(api_, load.loaded_executable, DevicesOf(devices), /*loaded=*/true);
}

StatusOr<std::unique_ptr<Buffer>> PjrtClient::Upload(model::DType dtype,
                                                     std::span<const int64_t> dims,
                                                     std::span<const std::byte> bytes, int device) {
  TROUPE_CHECK(device >= 0 && device < std::ssize(devices_), "device {} of {}", device,
               devices_.size());
  int64_t size = model::SizeOf(dtype);
  for (const int64_t dim : dims) size *= dim;
  TROUPE_CHECK(size == std::ssize(bytes), "{} bytes for a tensor of {}", bytes.size(), size);
  TROUPE_PJRT_ARGUMENTS(PJRT_Client_BufferFromHostBuffer_Args, upload);
  upload.client = client_;
  upload.data = bytes.data();
  upload.type = TypeOf(dtype);
  upload.dims = dims.data();
  upload.num_dims = dims.size();
  upload.host_buffer_semantics = PJRT_HostBufferSemantics_kImmutableOnlyDuringCall;
  upload.device = devices_[device];
  TROUPE_RETURN_IF_ERROR(TakeStatus(api_, api_.PJRT_Client_BufferFromHostBuffer(&upload)));
  auto buffer = std::make_unique<PjrtBuffer>(api_, upload.buffer, size);
  TROUPE_RETURN_IF_ERROR(AwaitAndDestroy(api_, upload.done_with_host_buffer));
  return buffer;
}

}  // namespace

StatusOr<std::unique_ptr<Client>> Client::Make(const std::string& path, int threads) {
  TROUPE_ASSIGN_OR_RETURN(const LoadedPlugin plugin, LoadPlugin(path, threads));
  const PJRT_Api* const api = plugin.api;
  TROUPE_PJRT_ARGUMENTS(PJRT_Client_Create_Args, create);
  Status status = TakeStatus(*api, api->PJRT_Client_Create(&create));
  if (status.ok()) {
    auto client = std::make_unique<PjrtClient>(*api, create.client);
    status = client->Describe(path, plugin.file, threads);
    if (status.ok()) return client;
  }
  return FailedPrecondition("the plugin of XLA {} makes no client: {}", path, Message(status));
}

}  // namespace troupe::kernels::xla
