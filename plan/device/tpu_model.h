// The TPUs that plans can be made for: their peaks, memory and links. Pure.
#ifndef TROUPE_PLAN_DEVICE_TPU_MODEL_H_
#define TROUPE_PLAN_DEVICE_TPU_MODEL_H_

#include <cstdint>
#include <span>
#include <string_view>

namespace troupe {

// A device as its driver counts them; a chip has one, or two that share its links. Rates are those
// of Google's data sheets (docs.cloud.google.com/tpu/docs/v5e and its neighbours) for a chip,
// divided among its devices; memory_bytes is what libtpu 0.0.52 reports as the limit of a device.
struct TpuModel {
  std::string_view model;       // "TPU v5 lite": v1.DeviceKind.model, as libtpu names it
  std::string_view generation;  // "v5e": the word before the colon in the name of a topology
  uint32_t pci_device = 0;      // id of the vendor Google, 0x1ae0
  int devices_per_chip = 1;
  double bfloat16_flops_per_second = 0;  // peak of matmuls; none is published for float32
  int64_t memory_bytes = 0;
  double memory_bytes_per_second = 0;
  // Sent by a device over the two links of one axis of the torus, which a ring of devices uses.
  double ring_bytes_per_second = 0;
  int axes = 0;             // dimensions of the torus: 2 or 3
  int chips_per_slice = 0;  // chips of the largest slice
};

// The names of all TPUs that libtpu drives begin so, also of those that are none of TpuModels().
inline constexpr std::string_view kTpuModelsBegin = "TPU";

std::span<const TpuModel> TpuModels();

// The TPU that libtpu calls `model`; null if it is none of TpuModels().
const TpuModel* FindTpuModel(std::string_view model);

// The TPU whose chips have this PCI device id of Google's; null if it is none of TpuModels().
const TpuModel* FindTpuModelOfPci(uint32_t pci_device);

}  // namespace troupe

#endif  // TROUPE_PLAN_DEVICE_TPU_MODEL_H_
