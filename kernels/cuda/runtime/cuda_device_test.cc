// Tests CudaDevice against a recorded CUDA runtime, without a GPU: the calls, their order, and the
// handling of errors.
#include "kernels/cuda/runtime/cuda_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "kernels/cuda/runtime/device_loss.h"
#include "kernels/cuda/runtime/recorded_runtime.h"

namespace troupe::kernels::cuda {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

void Kernel(int) {}

class CudaDeviceTest : public testing::Test {
 protected:
  CudaDeviceTest() { Runtime() = {}; }

  static std::unique_ptr<CudaDevice> Made(CudaDeviceOptions options = {}) {
    auto device = CudaDevice::Make(0, std::move(options));
    EXPECT_TRUE(device.ok()) << device.status();
    return std::move(*device);
  }
  // The stream as the recorded runtime prints it.
  static int64_t NumberOf(const CudaDevice& device, Stream stream) {
    return reinterpret_cast<int64_t>(device.native_stream(stream));
  }
};

TEST_F(CudaDeviceTest, MakesThreeStreamsOfWhichCommunicationGoesFirst) {
  auto device = Made();
  EXPECT_THAT(Runtime().DrainCalls(),
              ElementsAre("cudaStreamCreateWithPriority non-blocking=true priority=0",
                          "cudaStreamCreateWithPriority non-blocking=true priority=-5",
                          "cudaStreamCreateWithPriority non-blocking=true priority=0"));
  EXPECT_EQ(device->facts().uuid, "GPU-00112233-4455-6677-8899-aabbccddeeff");
  EXPECT_EQ(device->facts().pci_bus_id, "0000:1B:00.0");
  EXPECT_EQ(device->facts().multiprocessors, 132);
  EXPECT_EQ(device->description(), "Recorded GPU, driver for CUDA 13.0, runtime 13.0");
}

TEST_F(CudaDeviceTest, StreamsThatAreMadeLaterGoFirstToo) {
  const auto device = Made();
  Runtime().DrainCalls();
  const StatusOr<Stream> made = device->MakeStream();
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(static_cast<int>(*made), kNamedStreams);
  EXPECT_THAT(Runtime().DrainCalls(),
              ElementsAre("cudaStreamCreateWithPriority non-blocking=true priority=-5"));
  EXPECT_NE(device->native_stream(*made), device->native_stream(Stream::kCommunication));
}

TEST_F(CudaDeviceTest, ReportsWhyThereIsNone) {
  Runtime().count_error = cudaErrorInsufficientDriver;
  Runtime().driver_version = 0;
  const Status none = CudaDevice::Make(0, {}).status();
  EXPECT_EQ(none.code(), StatusCode::kUnavailable);
  EXPECT_THAT(std::string(Message(none)), HasSubstr("no NVIDIA driver, this build's CUDA is 13.0"));
  Runtime().driver_version = 12040;
  EXPECT_THAT(std::string(Message(CudaDevice::Make(0, {}).status())),
              HasSubstr("the driver's CUDA version is 12.4"));
}

TEST_F(CudaDeviceTest, RefusesWhatIsNotThereAndWhatItsKernelsDoNotRunOn) {
  EXPECT_EQ(CudaDevice::Make(2, {}).status().code(), StatusCode::kInvalidArgument);
  Runtime().capability_major = 7;
  const Status older = CudaDevice::Make(0, {}).status();
  EXPECT_EQ(older.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(Message(older)), HasSubstr("compute capability 7.0"));
}

TEST_F(CudaDeviceTest, LaunchesWithTheStructAsTheOnlyArgument) {
  auto device = Made();
  Runtime().DrainCalls();
  const KernelLaunch launch =
      MakeLaunch("kernel", &Kernel, {.blocks_x = 3, .blocks_y = 2, .threads = 64}, 17);
  ASSERT_TRUE(device->Launch(launch, Stream::kCopy).ok());
  const std::string line = fmt::format("cudaLaunchKernel 3x2 of 64 shared=0 stream={} argument=17",
                                       NumberOf(*device, Stream::kCopy));
  EXPECT_THAT(Runtime().DrainCalls(), ElementsAre("cudaFuncGetAttributes relaxed=true", line));
  ASSERT_TRUE(device->Launch(launch, Stream::kCopy).ok());
  EXPECT_THAT(Runtime().DrainCalls(), ElementsAre(line));  // already loaded
}

TEST_F(CudaDeviceTest, AsksOnceForMoreSharedMemoryThanAKernelHasUnasked) {
  auto device = Made();
  KernelLaunch launch = MakeLaunch("kernel", &Kernel, {.shared_bytes = 200 << 10}, 0);
  const auto asked = testing::StartsWith("cudaFuncSetAttribute");
  Runtime().DrainCalls();
  ASSERT_TRUE(device->Launch(launch, Stream::kCompute).ok());
  EXPECT_THAT(Runtime().DrainCalls(), Contains("cudaFuncSetAttribute dynamic-shared=true 204800"));
  launch.shape.shared_bytes = 100 << 10;
  ASSERT_TRUE(device->Launch(launch, Stream::kCompute).ok());
  EXPECT_THAT(Runtime().DrainCalls(), Not(Contains(asked)));
}

TEST_F(CudaDeviceTest, CapturesAGraphOfTheComputeStreamAndUploadsIt) {
  auto device = Made();
  Runtime().DrainCalls();
  ASSERT_TRUE(device->BeginCapture().ok());
  auto graph = device->EndCapture();
  ASSERT_TRUE(graph.ok());
  ASSERT_TRUE(device->LaunchGraph(*graph).ok());
  const int64_t stream = NumberOf(*device, Stream::kCompute);
  EXPECT_THAT(
      Runtime().DrainCalls(),
      ElementsAre(fmt::format("cudaStreamBeginCapture stream={} thread-local=true", stream),
                  fmt::format("cudaStreamEndCapture stream={}", stream), "cudaGraphInstantiate",
                  "cudaGraphDestroy", fmt::format("cudaGraphUpload stream={}", stream),
                  fmt::format("cudaGraphLaunch stream={}", stream)));
  device = nullptr;
  EXPECT_THAT(Runtime().DrainCalls(), Contains("cudaGraphExecDestroy"));
}

TEST_F(CudaDeviceTest, AGraphThatIsReleasedIsDestroyedOnceAndAtOnce) {
  auto device = Made();
  std::vector<Graph> graphs;
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(device->BeginCapture().ok());
    graphs.push_back(device->EndCapture().value());
  }
  Runtime().DrainCalls();
  device->Release(graphs[0]);
  EXPECT_THAT(Runtime().DrainCalls(), ElementsAre("cudaGraphExecDestroy"));
  device = nullptr;
  EXPECT_EQ(std::ranges::count(Runtime().DrainCalls(), std::string("cudaGraphExecDestroy")), 1);
}

TEST_F(CudaDeviceTest, AGraphThatCannotBeUploadedHoldsNothing) {
  auto device = Made();
  ASSERT_TRUE(device->BeginCapture().ok());
  Runtime().fails["cudaGraphUpload"] = cudaErrorMemoryAllocation;
  EXPECT_EQ(device->EndCapture().status().code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(Runtime().DrainCalls(), Contains("cudaGraphExecDestroy"));
}

TEST_F(CudaDeviceTest, PinnedMemoryCanBeHadWithinACapture) {
  auto device = Made();
  ASSERT_TRUE(device->BeginCapture().ok());
  const DeviceMemory memory = device->AllocatePinned(100).value();
  EXPECT_THAT(Runtime().DrainCalls(), Contains("cudaMallocHost 100 relaxed=true"));
}

TEST_F(CudaDeviceTest, AKernelIsBroughtOntoTheDeviceBeforeItsFirstLaunch) {
  auto device = Made();
  const KernelLaunch launch = MakeLaunch("kernel", &Kernel, {}, 17);
  Runtime().DrainCalls();
  ASSERT_TRUE(device->Load(launch).ok());
  EXPECT_THAT(Runtime().DrainCalls(), ElementsAre("cudaFuncGetAttributes relaxed=true"));
  ASSERT_TRUE(device->Launch(launch, Stream::kCompute).ok());
  EXPECT_THAT(Runtime().DrainCalls(), Not(Contains(testing::StartsWith("cudaFuncGetAttributes"))));
}

TEST_F(CudaDeviceTest, ACaptureThatFailsLeavesItReadyForAnother) {
  auto device = Made();
  ASSERT_TRUE(device->BeginCapture().ok());
  Runtime().fails["cudaStreamEndCapture"] = cudaErrorStreamCaptureInvalidated;
  EXPECT_EQ(device->EndCapture().status().code(), StatusCode::kInternal);
  Runtime().fails.clear();
  ASSERT_TRUE(device->BeginCapture().ok());
  EXPECT_EQ(device->EndCapture().value(), 0);
}

TEST_F(CudaDeviceTest, FinishAsksUntilTheEventIsOver) {
  auto device = Made();
  const Event event = device->MakeEvent().value();
  ASSERT_TRUE(device->Record(event, Stream::kCompute).ok());
  Runtime().not_ready = 100;
  EXPECT_TRUE(device->Finish(event).ok());
  EXPECT_EQ(Runtime().not_ready, 0);
}

TEST_F(CudaDeviceTest, FinishEndsAtItsLimitAndThenMemoryIsLeftAlone) {
  auto device = Made({.wait_limit = std::chrono::milliseconds(5)});
  DeviceMemory memory = device->Allocate(100).value();
  const Event event = device->MakeEvent().value();
  Runtime().not_ready = -1;
  EXPECT_FALSE(device->is_gone());
  EXPECT_EQ(device->Finish(event).code(), StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(device->is_gone());
  Runtime().DrainCalls();
  char* const left = memory.get();
  memory = nullptr;
  device = nullptr;
  EXPECT_THAT(Runtime().DrainCalls(), ElementsAre());
  std::free(left);
}

TEST_F(CudaDeviceTest, FinishEndsWithTheInterruption) {
  Status interruption = OkStatus();
  auto device = Made({.interruption = [&] { return interruption; }});
  const Event event = device->MakeEvent().value();
  interruption = Unavailable("rank 3 is gone");
  Runtime().not_ready = -1;
  EXPECT_EQ(device->Finish(event), interruption);
  // The work in flight has ended, so everything is freed.
  Runtime().not_ready = 0;
  device->Allocate(100).value() = nullptr;
  EXPECT_THAT(Runtime().DrainCalls(), Contains("cudaFree"));
}

TEST_F(CudaDeviceTest, WhatIsOverAfterAnAbortIsNoSuccess) {
  Status interruption = OkStatus();
  auto device = Made({.interruption = [&] { return interruption; }});
  const Event event = device->MakeEvent().value();
  EXPECT_TRUE(device->Finish(event).ok());
  interruption = Unavailable("the collectives were aborted");
  EXPECT_EQ(device->Finish(event), interruption);
  char to = 0;
  EXPECT_EQ(device->CopyNow(&to, &to, 1), interruption);
  EXPECT_FALSE(device->is_gone());
}

TEST_F(CudaDeviceTest, AnIllegalAddressLosesTheDevice) {
  auto device = Made();
  DeviceMemory memory = device->Allocate(100).value();
  const Event event = device->MakeEvent().value();
  Runtime().fails["cudaEventQuery"] = cudaErrorIllegalAddress;
  const Status lost = device->Finish(event);
  EXPECT_EQ(DeviceLossOf(lost), "cudaErrorIllegalAddress");
  EXPECT_EQ(Message(lost), "work of the device: cudaErrorIllegalAddress: its text");
  Runtime().DrainCalls();
  char* const left = memory.get();
  memory = nullptr;
  EXPECT_THAT(Runtime().DrainCalls(), ElementsAre());
  std::free(left);
}

TEST_F(CudaDeviceTest, PinsMemoryOfTheHostForAWhile) {
  auto device = Made();
  Runtime().DrainCalls();
  char memory[64];
  auto pinned = device->Pin(memory, sizeof(memory));
  ASSERT_TRUE(pinned.ok()) << pinned.status();
  EXPECT_THAT(Runtime().DrainCalls(), Contains("cudaHostRegister 64"));
  pinned->reset();
  EXPECT_THAT(Runtime().DrainCalls(), Contains("cudaHostUnregister"));
  Runtime().fails["cudaHostRegister"] = cudaErrorMemoryAllocation;
  EXPECT_EQ(device->Pin(memory, sizeof(memory)).status().code(), StatusCode::kResourceExhausted);
}

TEST_F(CudaDeviceTest, ReportsHowMuchMemoryCouldNotBeHad) {
  auto device = Made();
  Runtime().fails["cudaMalloc"] = cudaErrorMemoryAllocation;
  const Status lacking = device->Allocate(123456).status();
  EXPECT_EQ(lacking.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(DeviceLossOf(lacking), "");
  EXPECT_THAT(std::string(Message(lacking)), HasSubstr("123456 bytes of Recorded GPU"));
  // The error is cleared, so that the next call does not report it.
  EXPECT_THAT(Runtime().DrainCalls(), Contains("cudaGetLastError"));
}

TEST_F(CudaDeviceTest, CopiesAndClearsOnTheStreamThatIsNamed) {
  auto device = Made();
  const DeviceMemory memory = device->Allocate(100).value();
  Runtime().DrainCalls();
  ASSERT_TRUE(device->Copy(memory.get(), memory.get() + 50, 50, Stream::kCommunication).ok());
  ASSERT_TRUE(device->Clear(memory.get(), 100, Stream::kCompute).ok());
  ASSERT_TRUE(device->Clear(memory.get(), 0, Stream::kCompute).ok());
  EXPECT_THAT(Runtime().DrainCalls(),
              ElementsAre(fmt::format("cudaMemcpyAsync 50 default=true stream={}",
                                      NumberOf(*device, Stream::kCommunication)),
                          fmt::format("cudaMemsetAsync 100 to 0 stream={}",
                                      NumberOf(*device, Stream::kCompute))));
}

}  // namespace
}  // namespace troupe::kernels::cuda
