// Compares the CUDA backend on the emulated device with the float64 reference; tests results, not
// speed.
#include <gtest/gtest.h>

#include "kernels/cuda/emulated/emulated_backend.h"
#include "kernels/testing/float8_kernel_test.h"

namespace troupe::kernels {
namespace {

KernelSetting Setting(model::DType compute) {
  return {model::Name(compute), compute, [] { return std::make_unique<EmulatedBackend>(); }};
}

INSTANTIATE_TEST_SUITE_P(Emulated, KernelTest,
                         testing::Values(Setting(model::DType::kFloat32),
                                         Setting(model::DType::kBFloat16)),
                         NameOfSetting);
INSTANTIATE_TEST_SUITE_P(Emulated, Float8KernelTest,
                         testing::Values(Setting(model::DType::kBFloat16)), NameOfSetting);

}  // namespace
}  // namespace troupe::kernels
