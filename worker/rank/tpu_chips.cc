#include "worker/rank/tpu_chips.h"

namespace troupe {

std::optional<TpuChips> FindTpuChips(std::span<const kernels::xla::PciDevice> devices) {
  TpuChips chips;
  for (const kernels::xla::PciDevice& device : devices) {
    if (device.vendor != kernels::xla::kPciVendorGoogle) continue;
    const TpuModel* const model = FindTpuModelOfPci(device.device);
    if (model == nullptr) continue;
    chips.model = model;
    ++chips.count;
  }
  return chips.count > 0 ? std::optional(chips) : std::nullopt;
}

StatusOr<std::vector<v1::Device>> TpuDevices(const TpuChips& chips, const v1::DeviceKind& kind,
                                             int count) {
  const TpuModel& model = *chips.model;
  if (model.devices_per_chip > 1) {
    return Unimplemented(
        "a chip of {} has {} devices, which belong to one process: ranks, which have one device "
        "each, cannot share it",
        model.model, model.devices_per_chip);
  }
  if (count > chips.count) {
    return InvalidArgument("{} devices of XLA are asked for, and this host has {} of {}", count,
                           chips.count, model.model);
  }
  std::vector<v1::Device> devices(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    v1::Device& device = devices[static_cast<size_t>(i)];
    device.set_index(i);
    *device.mutable_kind() = kind;
    device.set_memory_bytes(model.memory_bytes);
    device.set_peak_flops_bfloat16(model.bfloat16_flops_per_second);
  }
  return devices;
}

std::map<std::string, std::string> OneChipEnvironment(int chip) {
  constexpr int kFirstPort = 8476;  // libtpu's default; other processes of the host have the next
  const std::string port = std::to_string(kFirstPort + chip);
  return {{"TPU_VISIBLE_CHIPS", std::to_string(chip)},
          {"TPU_CHIPS_PER_PROCESS_BOUNDS", "1,1,1"},
          {"TPU_PROCESS_BOUNDS", "1,1,1"},
          {"TPU_PROCESS_ADDRESSES", "localhost:" + port},
          {"TPU_PROCESS_PORT", port},
          {"CLOUD_TPU_TASK_ID", "0"}};
}

}  // namespace troupe
