#include "kernels/cuda/runtime/device_loss.h"

#include <gtest/gtest.h>

namespace troupe::kernels::cuda {
namespace {

TEST(DeviceLoss, TravelsWithTheStatus) {
  const Status lost = WithDeviceLoss(Internal("a kernel failed"), "cudaErrorIllegalAddress");
  EXPECT_EQ(DeviceLossOf(Annotate(lost, "rms_norm")), "cudaErrorIllegalAddress");
  EXPECT_EQ(lost.code(), StatusCode::kInternal);
}

TEST(DeviceLoss, IsNotReportedForOtherErrors) {
  EXPECT_EQ(DeviceLossOf(Internal("a kernel failed")), "");
  EXPECT_TRUE(WithDeviceLoss(OkStatus(), "cudaErrorIllegalAddress").ok());
}

}  // namespace
}  // namespace troupe::kernels::cuda
