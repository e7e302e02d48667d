#include "kernels/cuda/mark.h"

#include <gtest/gtest.h>

#include "kernels/cuda/emulated/launch.h"

namespace troupe::kernels::cuda {
namespace {

TEST(Mark, CountsBeginningsAndEndsAndAddsUpTheTimeBetween) {
  Mark mark{};
  emulator::Launch(BeginMark(&mark));
  EXPECT_EQ(mark.begun, 1u);
  EXPECT_EQ(mark.over, 0u);
  const uint64_t first = mark.begin_ns;
  EXPECT_GT(first, 0u);
  emulator::Launch(EndMark(&mark));
  EXPECT_EQ(mark.over, 1u);
  const uint64_t once = mark.total_ns;
  emulator::Launch(BeginMark(&mark));
  emulator::Launch(EndMark(&mark));
  EXPECT_EQ(mark.begun, 2u);
  EXPECT_EQ(mark.over, 2u);
  EXPECT_GE(mark.total_ns, once);
  EXPECT_GE(mark.begin_ns, first + once);
}

}  // namespace
}  // namespace troupe::kernels::cuda
