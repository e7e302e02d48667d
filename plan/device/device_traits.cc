#include "plan/device/device_traits.h"

#include "base/check.h"
#include "model/program/gpu_working_memory.h"
#include "plan/device/device_kind.h"
#include "plan/device/gpu_reserve.h"

namespace troupe {
namespace {

constexpr DeviceMemoryModel kGpuMemory = {.working_bytes = model::GpuWorkingBytes,
                                          .reserve_bytes = GpuReserveBytes};

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
     .multiplies_float8 = false,
     .flops_per_byte_float32 = 4,
     .flops_per_byte_bfloat16 = 8},
};

}  // namespace

const DeviceTraits* FindDeviceTraits(std::string_view kind) {
  for (const DeviceTraits& traits : kTraits) {
    if (traits.kind == kind) return &traits;
  }
  return nullptr;
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

}  // namespace troupe
