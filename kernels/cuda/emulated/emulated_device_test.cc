#include "kernels/cuda/emulated/emulated_device.h"

#include <gtest/gtest.h>

#include <string>

#include "base/check.h"

namespace troupe::kernels::cuda::emulator {
namespace {

class EmulatedDeviceTest : public testing::Test {
 protected:
  // Enqueues work on `stream` that appends `letter`.
  void Put(char letter, Stream stream) {
    TROUPE_CHECK_OK(device_.Enqueue(
        std::string(1, letter),
        [this, letter] {
          done_ += letter;
          return OkStatus();
        },
        stream));
  }
  Event Record(Stream stream) {
    const Event event = device_.MakeEvent().value();
    TROUPE_CHECK_OK(device_.Record(event, stream));
    return event;
  }

  EmulatedDevice device_;
  std::string done_;
};

TEST_F(EmulatedDeviceTest, DoesNoMoreThanWhatTheHostWaitsFor) {
  const Stream link = device_.MakeStream().value();
  EXPECT_EQ(Name(link), "3");
  Put('a', Stream::kCompute);
  const Event first = Record(Stream::kCompute);
  Put('b', Stream::kCompute);
  Put('c', link);
  EXPECT_EQ(done_, "");
  TROUPE_CHECK_OK(device_.Finish(first));
  EXPECT_EQ(done_, "a");
  TROUPE_CHECK_OK(device_.Finish(Record(link)));
  EXPECT_EQ(done_, "abc");
}

TEST_F(EmulatedDeviceTest, AGraphHoldsStreamsThatGoApartAndComeTogether) {
  const Stream link = device_.MakeStream().value();
  TROUPE_CHECK_OK(device_.BeginCapture());
  Put('a', Stream::kCompute);
  TROUPE_CHECK_OK(device_.WaitFor(Record(Stream::kCompute), link));
  Put('b', link);
  TROUPE_CHECK_OK(device_.WaitFor(Record(link), Stream::kCompute));
  Put('c', Stream::kCompute);
  const Graph graph = device_.EndCapture().value();
  for (int i = 0; i < 2; ++i) TROUPE_CHECK_OK(device_.LaunchGraph(graph));
  TROUPE_CHECK_OK(device_.Finish(Record(Stream::kCompute)));
  EXPECT_EQ(done_, "abcabc");
}

TEST_F(EmulatedDeviceTest, ACaptureThatTheComputeStreamDoesNotWaitForIsRefused) {
  const Stream link = device_.MakeStream().value();
  TROUPE_CHECK_OK(device_.BeginCapture());
  TROUPE_CHECK_OK(device_.WaitFor(Record(Stream::kCompute), link));
  Put('a', link);
  EXPECT_EQ(device_.EndCapture().status().code(), StatusCode::kInternal);
}

TEST_F(EmulatedDeviceTest, ACaptureOfAStreamThatDoesNotWaitForTheComputeStreamIsRefused) {
  TROUPE_CHECK_OK(device_.BeginCapture());
  Put('a', Stream::kCommunication);
  TROUPE_CHECK_OK(device_.WaitFor(Record(Stream::kCommunication), Stream::kCompute));
  EXPECT_EQ(device_.EndCapture().status().code(), StatusCode::kInternal);
}

TEST_F(EmulatedDeviceTest, ACaptureThatWaitsForWhatWasBeforeItIsRefused) {
  const Event before = Record(Stream::kCommunication);
  TROUPE_CHECK_OK(device_.BeginCapture());
  TROUPE_CHECK_OK(device_.WaitFor(before, Stream::kCompute));
  EXPECT_EQ(device_.EndCapture().status().code(), StatusCode::kInternal);
}

}  // namespace
}  // namespace troupe::kernels::cuda::emulator
