#include "plan/device/device_traits.h"

#include "base/check.h"
#include "model/program/gpu_working_memory.h"
#include "plan/device/device_kind.h"
#include "plan/device/gpu_reserve.h"
#include "plan/device/tpu_memory.h"
#include "plan/device/tpu_model.h"
#include "plan/job/violation.h"

namespace troupe {
namespace {

constexpr DeviceMemoryModel kGpuMemory = {.working_bytes = model::GpuWorkingBytes,
                                          .reserve_bytes = GpuReserveBytes};

constexpr DeviceMemoryModel kTpuMemory = {.working_bytes = TpuWorkingBytes,
                                          .reserve_bytes = TpuReserveBytes};

constexpr DeviceTraits kTraits[] = {
    // Rates of two AMD Zen 4 cores.
    {.kind = "cpu",
     .shares_host_cores = true,
     .flops_per_byte_float32 = 4,
     .flops_per_byte_bfloat16 = 8},
    // Rates of an H200. Each chunk of the head's rows reads and writes the whole gradient of the
    // table, which takes a GPU as much time as the matmul with one or two thousand rows.
    {.kind = "cuda",
     .memory = &kGpuMemory,
     .control_lag_steps = 1,
     .head_logits_bytes = uint64_t{2} << 30,
     .flops_per_byte_float32 = 14,
     .flops_per_byte_bfloat16 = 200},
    // XLA's plugin for processors: the devices are the host's cores and memory.
    {.kind = "xla",
     .shares_host_cores = true,
     .compiles_programs = true,
     .why_not = model::WhyNotOnXla,
     .flops_per_byte_float32 = 4,
     .flops_per_byte_bfloat16 = 8},
};

// Steps are submitted one after the other, as on XLA's other devices.
// Rates of a TPU v5e; float32 is multiplied in six passes of bfloat16.
constexpr DeviceTraits kTpuTraits = {.kind = "xla",
                                     .memory = &kTpuMemory,
                                     .compiles_programs = true,
                                     .why_not = model::WhyNotOnXla,
                                     .flops_per_byte_float32 = 40,
                                     .flops_per_byte_bfloat16 = 240};

}  // namespace

const DeviceTraits* FindDeviceTraits(std::string_view kind) {
  for (const DeviceTraits& traits : kTraits) {
    if (traits.kind == kind) return &traits;
  }
  return nullptr;
}

const DeviceTraits* FindDeviceTraits(const v1::DeviceKind& device) {
  if (device.kind() == kTpuTraits.kind && FindTpuModel(device.model()) != nullptr)
    return &kTpuTraits;
  return FindDeviceTraits(device.kind());
}

std::vector<std::string_view> DeviceKinds() {
  std::vector<std::string_view> kinds;
  for (const DeviceTraits& traits : kTraits) kinds.push_back(traits.kind);
  return kinds;
}

const DeviceTraits& DeviceTraitsOf(std::string_view devices) {
  const DeviceTraits* const traits =
      FindDeviceTraits(devices.empty() ? kDefaultDeviceKind : devices);
  TROUPE_CHECK(traits != nullptr, "devices {}", devices);
  return *traits;
}

const DeviceTraits& DeviceTraitsOf(const v1::JobSpec& spec, const v1::Plan& plan) {
  v1::DeviceKind device;
  device.set_kind(std::string(DeviceTraitsOf(spec.devices()).kind));
  device.set_model(plan.has_device() ? plan.device().model()
                                     : plan.device_profile().device_model());
  return *FindDeviceTraits(device);
}

Status CheckProfileIsOfJobsDevices(const v1::JobSpec& spec, const v1::DeviceProfile& profile) {
  if (FindTpuModel(profile.device_model()) == nullptr) return OkStatus();
  const std::string_view kind = DeviceTraitsOf(spec.devices()).kind;
  if (kind == kTpuTraits.kind) return OkStatus();
  Violations violations;
  violations.Add("devices",
                 "is {}, but device profile {} is of {}, which jobs with devices: {} use", kind,
                 profile.name(), profile.device_model(), kTpuTraits.kind);
  return violations.ToStatus();
}

}  // namespace troupe
