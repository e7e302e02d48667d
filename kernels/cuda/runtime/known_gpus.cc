#include "kernels/cuda/runtime/known_gpus.h"

#include <array>

namespace troupe::kernels::cuda {
namespace {

struct KnownGpu {
  std::string_view name;  // part of the name that the driver reports
  GpuPeak peak;
};

// The first match counts, so more specific names come first.
constexpr std::array kKnownGpus = {
    KnownGpu{"H200", {67e12, 989.4e12}},     KnownGpu{"H100 PCIe", {51.2e12, 756.4e12}},
    KnownGpu{"H100 NVL", {60e12, 835.5e12}}, KnownGpu{"H100", {66.9e12, 989.4e12}},
    KnownGpu{"B200", {75e12, 2250e12}},      KnownGpu{"A100", {19.5e12, 312e12}},
};

}  // namespace

GpuPeak KnownGpuPeak(std::string_view name) {
  for (const KnownGpu& known : kKnownGpus) {
    if (name.find(known.name) != std::string_view::npos) return known.peak;
  }
  return {};
}

}  // namespace troupe::kernels::cuda
