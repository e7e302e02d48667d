#include "kernels/cuda/runtime/device_marks.h"

#include <gtest/gtest.h>

#include <set>

#include "base/check.h"
#include "kernels/cuda/emulated/emulated_device.h"

namespace troupe::kernels::cuda {
namespace {

class DeviceMarksTest : public testing::Test {
 protected:
  void Finish() {
    TROUPE_CHECK_OK(device_.Record(event_, Stream::kCompute));
    TROUPE_CHECK_OK(device_.Finish(event_));
  }

  emulator::EmulatedDevice device_;
  const Event event_ = device_.MakeEvent().value();
  DeviceMarks marks_{device_};
};

TEST_F(DeviceMarksTest, ARunThatHasNotEndedIsSeen) {
  const int mark = marks_.Make().value();
  TROUPE_CHECK_OK(marks_.Begin(mark, Stream::kCompute));
  EXPECT_EQ(marks_.Read(mark).begun, 0u) << "before the stream comes to it";
  Finish();
  EXPECT_EQ(marks_.Read(mark).begun, 1u);
  EXPECT_EQ(marks_.Read(mark).over, 0u);
  TROUPE_CHECK_OK(marks_.End(mark, Stream::kCompute));
  Finish();
  EXPECT_EQ(marks_.Read(mark).over, 1u);
  EXPECT_GT(marks_.Read(mark).seconds, 0);
  EXPECT_LT(marks_.Read(mark).seconds, 60);
}

TEST_F(DeviceMarksTest, RunsOfAGraphAreCounted) {
  const int mark = marks_.Make().value();
  TROUPE_CHECK_OK(device_.BeginCapture());
  TROUPE_CHECK_OK(marks_.Begin(mark, Stream::kCompute));
  TROUPE_CHECK_OK(marks_.End(mark, Stream::kCompute));
  const Graph graph = device_.EndCapture().value();
  for (int run = 0; run < 3; ++run) TROUPE_CHECK_OK(device_.LaunchGraph(graph));
  Finish();
  EXPECT_EQ(marks_.Read(mark).begun, 3u);
  EXPECT_EQ(marks_.Read(mark).over, 3u);
}

TEST_F(DeviceMarksTest, ManyMarksAreApart) {
  std::set<int> made;
  for (int i = 0; i < 600; ++i) made.insert(marks_.Make().value());
  ASSERT_EQ(made.size(), 600u);
  for (const int mark : {3, 259, 599}) TROUPE_CHECK_OK(marks_.Begin(mark, Stream::kCompute));
  Finish();
  for (const int mark : made) {
    EXPECT_EQ(marks_.Read(mark).begun, mark == 3 || mark == 259 || mark == 599 ? 1u : 0u) << mark;
  }
}

}  // namespace
}  // namespace troupe::kernels::cuda
