#include "kernels/cuda/runtime/known_gpus.h"

#include <gtest/gtest.h>

namespace troupe::kernels::cuda {
namespace {

TEST(KnownGpus, AreFoundByTheDriversNames) {
  EXPECT_EQ(KnownGpuPeak("NVIDIA H200").bfloat16, 989.4e12);
  EXPECT_EQ(KnownGpuPeak("NVIDIA H100 80GB HBM3").bfloat16, 989.4e12);
  EXPECT_LT(KnownGpuPeak("NVIDIA H100 PCIe").bfloat16, 800e12);
  EXPECT_EQ(KnownGpuPeak("NVIDIA A100-SXM4-80GB").float32, 19.5e12);
}

TEST(KnownGpus, OthersHaveNoPeak) {
  EXPECT_EQ(KnownGpuPeak("NVIDIA GeForce GTX 9999").bfloat16, 0);
  EXPECT_EQ(KnownGpuPeak("").float32, 0);
}

}  // namespace
}  // namespace troupe::kernels::cuda
