#include "worker/measure_profile.h"

#include <gtest/gtest.h>

#include "plan/device_profile.h"

namespace troupe {
namespace {

TEST(MeasureProfile, WritesWhatThePlannerReads) {
  const auto measured = MeasureProfile({.float32 = 1e12, .bfloat16 = 2e12}, 2);
  ASSERT_TRUE(measured.ok()) << measured.status();
  const auto read = ParseDeviceProfile(ToYaml(*measured), "profile.yaml");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->name(), measured->name());
  EXPECT_EQ(read->memory_bytes(), measured->memory_bytes());
  EXPECT_EQ(read->float32_flops_per_second(), 5e11);
  EXPECT_EQ(read->devices_per_island(), 2);
  EXPECT_TRUE(read->transfers_need_cores());
  EXPECT_GT(read->product_efficiency(), 0);
  // Any host of this century: slower than 100 MB/s or quicker than 10 TB/s is a wrong unit.
  for (const double rate : {read->memory_bytes_per_second(), read->island().bytes_per_second()}) {
    EXPECT_GT(rate, 1e8);
    EXPECT_LT(rate, 1e13);
  }
  EXPECT_GT(read->island().latency_seconds(), 1e-8);
  EXPECT_LT(read->launch_seconds(), 1e-1);
}

}  // namespace
}  // namespace troupe
