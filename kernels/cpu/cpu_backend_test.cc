// Tests the CPU's kernels at every level that this processor supports, with one thread and two; in
// an instrumented build with two, which run the same code.
#include "kernels/cpu/cpu_backend.h"

#include <gtest/gtest.h>

#include "base/testing/test_extent.h"
#include "kernels/testing/float8_kernel_test.h"

namespace troupe::kernels {
namespace {

using model::DType;

std::vector<KernelSetting> Settings() {
  std::vector<KernelSetting> settings;
  for (int i = 0; i <= static_cast<int>(cpu::HighestLevel()); ++i) {
    const auto level = static_cast<cpu::Level>(i);
    for (const DType compute : {DType::kFloat32, DType::kBFloat16}) {
      for (int threads = kInstrumented ? 2 : 1; threads <= 2; ++threads) {
        settings.push_back({std::string(cpu::Name(level)) + "_" + model::Name(compute) +
                                "_threads" + std::to_string(threads),
                            compute, [threads, level] {
                              return CpuBackend::Make({threads, level}).value();
                            }});
      }
    }
  }
  return settings;
}

INSTANTIATE_TEST_SUITE_P(EveryLevel, KernelTest, testing::ValuesIn(Settings()), NameOfSetting);

std::vector<KernelSetting> OfBFloat16() {
  std::vector<KernelSetting> settings = Settings();
  std::erase_if(settings, [](const KernelSetting& setting) {
    return setting.compute != model::DType::kBFloat16;
  });
  return settings;
}

INSTANTIATE_TEST_SUITE_P(EveryLevel, Float8KernelTest, testing::ValuesIn(OfBFloat16()),
                         NameOfSetting);

TEST(CpuBackend, RefusesWhatItCannotBe) {
  EXPECT_FALSE(CpuBackend::Make({0, std::nullopt}).ok());
  EXPECT_FALSE(cpu::ParseLevel("avx1024").ok());
  EXPECT_EQ(cpu::ParseLevel("avx512_bf16").value(), cpu::Level::kAvx512Bf16);
}

}  // namespace
}  // namespace troupe::kernels
