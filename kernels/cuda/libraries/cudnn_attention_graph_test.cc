// Tests attention graphs with the installed cuDNN for an H100 that need not be present: given a
// description of the device, cuDNN finds engines, compiles their kernels, and reports their
// workspace. Skipped if cuDNN is not installed.
#include "kernels/cuda/libraries/cudnn_attention_graph.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "kernels/cuda/libraries/cudnn_library.h"

namespace troupe::kernels::cuda {
namespace {

CudnnTarget H100() {
  return {.capability = 90, .multiprocessors = 132, .device_properties = R"({
    "maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64],
    "regsPerBlock": 65536, "multiProcessorCount": 132, "warpSize": 32,
    "maxSharedMemoryPerBlock": 49152, "maxSharedMemoryPerBlockOptin": 232448,
    "reservedSharedMemoryPerBlock": 1024, "maxRegistersPerSM": 65536, "maxCtasPerSM": 32,
    "maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048, "pciDeviceId": 0, "isTccDriver": 0,
    "supportCoopLaunch": 1, "totalGlobalMem": 85520809984, "smClockRateKHz": 1980000,
    "memClockRateKHz": 2619000, "l2CacheSize": 52428800, "cudaDeviceId": 0, "deviceVer": 900,
    "driverVer": 13000, "deviceName": "NVIDIA H100 80GB HBM3"})"};
}

// Must be the first test, while nothing is loaded.
TEST(CudnnLibrary, ReportsWhyItCannotBeLoaded) {
  EXPECT_EQ(LoadCudnn("libcudnn_of_nobody.so").code(), StatusCode::kNotFound);
  const Status other = LoadCudnn("libm.so.6");
  EXPECT_EQ(other.code(), StatusCode::kUnimplemented);
  EXPECT_THAT(ToString(other), testing::HasSubstr("function cudnnGetVersion is missing"));
}

class CudnnAttentionGraphTest : public testing::Test {
 protected:
  void SetUp() override {
    // Must precede cuDNN's search for the driver.
    ASSERT_NE(dlopen(TROUPE_FAKE_DRIVER, RTLD_NOW | RTLD_GLOBAL), nullptr) << dlerror();
    const Status loaded = LoadCudnn();
    if (loaded.code() == StatusCode::kNotFound) {
      GTEST_SKIP() << "no graph of cuDNN's was made: " << ToString(loaded);
    }
    ASSERT_TRUE(loaded.ok()) << ToString(loaded);
  }

  const CudnnTarget target_ = H100();
};

const std::vector<LibraryAttentionShape> kShapes = {
    {true, 8, 1024, 12, 12, 64},  // llama-124m
    {true, 1, 2048, 32, 8, 64},   // llama-1b
    {true, 1, 2048, 32, 8, 128}, {true, 2, 1024, 16, 16, 128}, {true, 3, 129, 6, 2, 8},
    {true, 1, 200, 4, 1, 40},    {true, 2, 65, 2, 2, 256},
};

GradientCall Whole(const LibraryAttentionShape& shape) {
  return {shape.samples, shape.key_value_heads};
}

TEST_F(CudnnAttentionGraphTest, HasAPlanOfTheForwardForAnH100) {
  for (const LibraryAttentionShape& shape : kShapes) {
    const auto graph = CudnnAttentionGraph::MakeForward(shape, target_);
    ASSERT_TRUE(graph.ok()) << ShapeText(shape) << ": " << ToString(graph.status());
    EXPECT_THAT((*graph)->plan(), testing::StartsWith("eng"));
    EXPECT_LE((*graph)->workspace_bytes(), 1 << 20) << ShapeText(shape);
  }
}

// The deterministic algorithm stores the gradients of all scores in bfloat16; the workspace of any
// other algorithm would not grow with T².
TEST_F(CudnnAttentionGraphTest, HasADeterministicPlanOfTheGradientForAnH100) {
  for (const LibraryAttentionShape& shape : kShapes) {
    const auto graph = CudnnAttentionGraph::MakeGradient(shape, Whole(shape), target_);
    ASSERT_TRUE(graph.ok()) << ShapeText(shape) << ": " << ToString(graph.status());
    EXPECT_THAT((*graph)->plan(), testing::StartsWith("eng"));
    EXPECT_GE((*graph)->workspace_bytes(),
              2 * shape.samples * shape.query_heads * shape.tokens * shape.tokens)
        << ShapeText(shape);
  }
}

TEST_F(CudnnAttentionGraphTest, OfAGradientStaysWithinTheLimitSomeSamplesOrHeadsAtATime) {
  const int64_t limit = int64_t{320} << 20;
  EXPECT_EQ(GradientCallOf({true, 64, 1024, 12, 12, 64}, limit), (GradientCall{8, 12}));
  EXPECT_EQ(GradientCallOf({true, 7, 1024, 12, 12, 64}, limit), (GradientCall{7, 12}));
  EXPECT_EQ(GradientCallOf({true, 5, 4096, 32, 8, 128}, limit), (GradientCall{1, 2}));
  EXPECT_EQ(GradientCallOf({true, 5, 4096, 12, 12, 64}, limit), (GradientCall{1, 6}));
  // This one exceeds the limit.
  EXPECT_EQ(GradientCallOf({true, 5, 8192, 32, 8, 128}, limit), (GradientCall{1, 1}));
  EXPECT_EQ(GradientCallOf({true, 0, 1024, 12, 12, 64}, limit), (GradientCall{1, 12}));
  for (const LibraryAttentionShape& shape :
       std::vector<LibraryAttentionShape>{{true, 64, 1024, 12, 12, 64},
                                          {true, 8, 2048, 32, 8, 128},
                                          {true, 60, 513, 8, 2, 64},
                                          {true, 2, 4096, 32, 8, 128},
                                          {true, 1, 8192, 16, 8, 64}}) {
    const GradientCall call = GradientCallOf(shape, limit);
    EXPECT_EQ(shape.samples % call.samples, 0) << ShapeText(shape);
    EXPECT_EQ(shape.key_value_heads % call.key_value_heads, 0) << ShapeText(shape);
    const auto graph = CudnnAttentionGraph::MakeGradient(shape, call, target_);
    ASSERT_TRUE(graph.ok()) << ShapeText(shape) << ": " << ToString(graph.status());
    EXPECT_LE((*graph)->workspace_bytes(), limit) << ShapeText(shape);
  }
}

TEST_F(CudnnAttentionGraphTest, ReportsWhyThereIsNone) {
  for (const LibraryAttentionShape& shape :
       std::vector<LibraryAttentionShape>{{true, 2, 9, 2, 1, 300}, {true, 2, 3, 2, 1, 5}}) {
    for (const Status& status :
         {CudnnAttentionGraph::MakeForward(shape, target_).status(),
          CudnnAttentionGraph::MakeGradient(shape, Whole(shape), target_).status()}) {
      EXPECT_EQ(status.code(), StatusCode::kUnimplemented) << ShapeText(shape);
      EXPECT_THAT(ToString(status), testing::HasSubstr("cuDNN: ")) << ShapeText(shape);
    }
  }
  EXPECT_EQ(
      CudnnAttentionGraph::MakeGradient({true, 1, 1, 1, 1, 64}, {1, 1}, target_).status().code(),
      StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace troupe::kernels::cuda
