#include "plan/device/device_traits.h"

#include <algorithm>

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
     .models_begin = "NVIDIA ",
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
                                     .models_begin = kTpuModelsBegin,
                                     .memory = &kTpuMemory,
                                     .compiles_programs = true,
                                     .why_not = model::WhyNotOnXla,
                                     .flops_per_byte_float32 = 40,
                                     .flops_per_byte_bfloat16 = 240};

constexpr std::string_view kProcessorsBegin[] = {"AMD EPYC", "AMD Ryzen", "Intel(R)"};

bool IsProcessor(std::string_view model) {
  return std::ranges::any_of(kProcessorsBegin,
                             [&](auto begin) { return model.starts_with(begin); });
}

// Returns the traits of the kind of devices that has models such as `model`; the first row is that
// of processors.
const DeviceTraits& TraitsOfModel(std::string_view model) {
  if (model.starts_with(kTpuTraits.models_begin)) return kTpuTraits;
  for (const DeviceTraits& traits : kTraits) {
    if (!traits.models_begin.empty() && model.starts_with(traits.models_begin)) return traits;
  }
  return kTraits[0];
}

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

const DeviceTraits& TraitsIn(const v1::Plan& plan, const DeviceTraits& of_job) {
  v1::DeviceKind device;
  device.set_kind(std::string(of_job.kind));
  device.set_model(plan.has_device() ? plan.device().model()
                                     : plan.device_profile().device_model());
  return *FindDeviceTraits(device);
}

Status CheckProfileIsOfJobsDevices(const v1::JobSpec& spec, const v1::DeviceProfile& profile) {
  const std::string& devices = spec.devices();
  const DeviceTraits* const wanted =
      FindDeviceTraits(devices.empty() ? kDefaultDeviceKind : std::string_view(devices));
  // A word that is no kind is refused as such.
  if (!profile.has_device_model() || wanted == nullptr) return OkStatus();
  const DeviceTraits& made_for = TraitsOfModel(profile.device_model());
  const bool are_processors = made_for.models_begin.empty();
  // Other words may name anything.
  if (are_processors && !IsProcessor(profile.device_model())) return OkStatus();
  if (wanted->kind == made_for.kind || (are_processors && wanted->shares_host_cores))
    return OkStatus();
  return RefuseField(
      StatusCode::kInvalidArgument, "devices",
      "is {}, but device profile {} is of {}, which jobs with devices: {} use{}", wanted->kind,
      profile.name(), profile.device_model(), made_for.kind,
      are_processors ? "; the model of a GPU begins with NVIDIA, and that of a TPU with TPU" : "");
}

}  // namespace troupe
