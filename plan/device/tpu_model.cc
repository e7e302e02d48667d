#include "plan/device/tpu_model.h"

#include <algorithm>

namespace troupe {
namespace {

constexpr TpuModel kModels[] = {
    {.model = "TPU v4",
     .generation = "v4",
     .pci_device = 0x005e,
     .bfloat16_flops_per_second = 275e12,
     .memory_bytes = 33'014'413'312,
     .memory_bytes_per_second = 1200e9,
     .ring_bytes_per_second = 100e9,
     .axes = 3,
     .chips_per_slice = 4096},
    {.model = "TPU v5 lite",
     .generation = "v5e",
     .pci_device = 0x0063,
     .bfloat16_flops_per_second = 197e12,
     .memory_bytes = 16'909'334'528,
     .memory_bytes_per_second = 819e9,
     .ring_bytes_per_second = 100e9,
     .axes = 2,
     .chips_per_slice = 256},
    {.model = "TPU v5",
     .generation = "v5p",
     .pci_device = 0x0062,
     .bfloat16_flops_per_second = 459e12,
     .memory_bytes = 102'786'660'352,
     .memory_bytes_per_second = 2765e9,
     .ring_bytes_per_second = 200e9,
     .axes = 3,
     .chips_per_slice = 4096},
    {.model = "TPU v6 lite",
     .generation = "v6e",
     .pci_device = 0x006f,
     .bfloat16_flops_per_second = 918e12,
     .memory_bytes = 33'546'041'344,
     .memory_bytes_per_second = 1638e9,
     .ring_bytes_per_second = 200e9,
     .axes = 2,
     .chips_per_slice = 256},
    {.model = "TPU7x",
     .generation = "tpu7x",
     .pci_device = 0x0076,
     .devices_per_chip = 2,
     .bfloat16_flops_per_second = 2307e12 / 2,
     .memory_bytes = 101'724'450'816,
     .memory_bytes_per_second = 7380e9 / 2,
     .ring_bytes_per_second = 100e9,
     .axes = 3,
     .chips_per_slice = 4096},
};

}  // namespace

std::span<const TpuModel> TpuModels() { return kModels; }

const TpuModel* FindTpuModel(std::string_view model) {
  const TpuModel* const found = std::ranges::find(kModels, model, &TpuModel::model);
  return found == std::end(kModels) ? nullptr : found;
}

const TpuModel* FindTpuModelOfPci(uint32_t pci_device) {
  const TpuModel* const found = std::ranges::find(kModels, pci_device, &TpuModel::pci_device);
  return found == std::end(kModels) ? nullptr : found;
}

}  // namespace troupe
