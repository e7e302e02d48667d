// Tests that a working device passes burn-in and that its rates can be measured.
#include "kernels/backend/burn_in.h"

#include "kernels/backend/backend_rates.h"
#include "kernels/testing/kernel_test.h"

namespace troupe::kernels {
namespace {

TEST_P(KernelTest, BurnInFindsASoundDeviceSound) {
  const auto seed = static_cast<uint64_t>(random_.Integer(1, 1 << 30));
  for (const int64_t extent : {1, 37, 80}) {
    const auto report = BurnIn(*backend_, {.extent = extent, .copy_elements = 9001, .seed = seed});
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_EQ(report->rounds, 1);
    EXPECT_EQ(report->flops, 2.0 * static_cast<double>(extent * extent * extent));
    EXPECT_EQ(report->bytes, 2.0 * 4 * 9001);
  }
}

TEST_P(KernelTest, RatesOfAllThatIsMeasuredAreFound) {
  const auto rates = MeasureBackendRates(*backend_, {.extent = 32,
                                                     .samples = 1,
                                                     .tokens = 16,
                                                     .heads = 2,
                                                     .head_dim = 8,
                                                     .copy_bytes = 512,
                                                     .seconds = 1e-5});
  ASSERT_TRUE(rates.ok()) << rates.status();
  for (const double rate : {rates->float32_matmuls, rates->bfloat16_matmuls, rates->attention,
                            rates->bytes, rates->launch_seconds}) {
    EXPECT_GT(rate, 0);
    EXPECT_TRUE(std::isfinite(rate));
  }
}

}  // namespace
}  // namespace troupe::kernels
