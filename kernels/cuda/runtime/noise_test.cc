#include "kernels/cuda/runtime/noise.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "kernels/cuda/emulated/emulated_device.h"
#include "kernels/numerics/bfloat16.h"

namespace troupe::kernels::cuda {
namespace {

TEST(Noise, FillsMemoryWithNumbersOfItsDtypeAndNoMore) {
  emulator::EmulatedDevice device;
  for (const bool bfloat16 : {false, true}) {
    constexpr int64_t kBytes = (4 << 20) + 1024;  // larger than the repeated buffer
    const DeviceMemory memory = device.Allocate(kBytes + 4).value();
    std::memset(memory.get(), 0x55, kBytes + 4);
    ASSERT_TRUE(FillWithNoise(device, memory.get(), kBytes, bfloat16).ok());
    std::set<float> seen;
    const int64_t element = bfloat16 ? 2 : 4;
    for (int64_t i = 0; i < kBytes / element; ++i) {
      float number = 0;
      if (bfloat16) {
        BFloat16 rounded;
        std::memcpy(&rounded, memory.get() + 2 * i, 2);
        number = ToFloat(rounded);
      } else {
        std::memcpy(&number, memory.get() + 4 * i, 4);
      }
      ASSERT_TRUE(number >= -1 && number <= 1) << i;
      if (i < 4096) seen.insert(number);
    }
    EXPECT_GT(seen.size(), 500u);
    EXPECT_LT(*seen.begin(), -0.9f);
    EXPECT_GT(*seen.rbegin(), 0.9f);
    EXPECT_TRUE(std::all_of(memory.get() + kBytes, memory.get() + kBytes + 4,
                            [](char c) { return c == 0x55; }));
  }
}

}  // namespace
}  // namespace troupe::kernels::cuda
