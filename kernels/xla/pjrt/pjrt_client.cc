#include "kernels/xla/pjrt/client.h"

#include <pjrt_c_api.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "kernels/xla/pjrt/buffer.h"
#include "kernels/xla/pjrt/call.h"
#include "kernels/xla/pjrt/compilation.h"
#include "kernels/xla/pjrt/compile_options.h"
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
  Status Describe(const std::string& path);

  const PluginFacts& plugin() const override { return plugin_; }
  const std::vector<DeviceFacts>& devices() const override { return device_facts_; }
  StatusOr<std::unique_ptr<Program>> Compile(std::string_view text, const Options& options,
                                             int device) override;
  StatusOr<std::unique_ptr<Buffer>> Upload(model::DType dtype, std::span<const int64_t> dims,
                                           std::span<const std::byte> bytes, int device) override;

 private:
  StatusOr<DeviceFacts> DescribeDevice(PJRT_Device* device) const;

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

Status PjrtClient::Describe(const std::string& path) {
  plugin_.path = path;
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

  TROUPE_PJRT_ARGUMENTS(PJRT_Client_AddressableDevices_Args, devices);
  devices.client = client_;
  TROUPE_RETURN_IF_ERROR(TakeStatus(api_, api_.PJRT_Client_AddressableDevices(&devices)));
  if (devices.num_addressable_devices == 0) return NotFound("the plugin finds no device");
  for (size_t d = 0; d < devices.num_addressable_devices; ++d) {
    devices_.push_back(devices.addressable_devices[d]);
    TROUPE_ASSIGN_OR_RETURN(DeviceFacts facts, DescribeDevice(devices_.back()));
    device_facts_.push_back(std::move(facts));
  }
  return OkStatus();
}

StatusOr<DeviceFacts> PjrtClient::DescribeDevice(PJRT_Device* device) const {
  TROUPE_PJRT_ARGUMENTS(PJRT_Device_GetDescription_Args, description);
  description.device = device;
  TROUPE_RETURN_IF_ERROR(TakeStatus(api_, api_.PJRT_Device_GetDescription(&description)));
  TROUPE_PJRT_ARGUMENTS(PJRT_DeviceDescription_Kind_Args, kind);
  kind.device_description = description.device_description;
  TROUPE_RETURN_IF_ERROR(TakeStatus(api_, api_.PJRT_DeviceDescription_Kind(&kind)));
  TROUPE_PJRT_ARGUMENTS(PJRT_DeviceDescription_Id_Args, id);
  id.device_description = description.device_description;
  TROUPE_RETURN_IF_ERROR(TakeStatus(api_, api_.PJRT_DeviceDescription_Id(&id)));
  TROUPE_PJRT_ARGUMENTS(PJRT_Device_MemoryStats_Args, memory);
  memory.device = device;
  const Status known = TakeStatus(api_, api_.PJRT_Device_MemoryStats(&memory));
  return DeviceFacts{
      .kind = std::string(kind.device_kind, kind.device_kind_size),
      .id = id.id,
      .memory_bytes = known.ok() && memory.bytes_limit_is_set ? memory.bytes_limit : 0};
}

StatusOr<std::unique_ptr<Program>> PjrtClient::Compile(std::string_view text,
                                                       const Options& options, int device) {
  TROUPE_CHECK(device >= 0 && device < std::ssize(devices_), "device {} of {}", device,
               devices_.size());
  const PJRT_Program program = MlirProgram(text);
  const std::string bytes =
      CompileOptionBytes(WithExactNumbers(plugin_.platform, options), device_facts_[device].id);
  TROUPE_PJRT_ARGUMENTS(PJRT_Client_Compile_Args, compile);
  compile.client = client_;
  compile.program = &program;
  compile.compile_options = bytes.data();
  compile.compile_options_size = bytes.size();
  TROUPE_RETURN_IF_ERROR(CompileStatus(TakeStatus(api_, api_.PJRT_Client_Compile(&compile))));
  return PjrtProgram::Make(api_, compile.executable);
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
  TROUPE_ASSIGN_OR_RETURN(const PJRT_Api* const api, LoadPlugin(path, threads));
  TROUPE_PJRT_ARGUMENTS(PJRT_Client_Create_Args, create);
  Status status = TakeStatus(*api, api->PJRT_Client_Create(&create));
  if (status.ok()) {
    auto client = std::make_unique<PjrtClient>(*api, create.client);
    status = client->Describe(path);
    if (status.ok()) return client;
  }
  return FailedPrecondition("the plugin of XLA {} makes no client: {}", path, Message(status));
}

}  // namespace troupe::kernels::xla
