#include "base/failure_cause.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(FailureCause, TravelsWithTheStatusThroughAnnotations) {
  const Status status = WithCause(OutOfRange("loss is nan"), cause::kNonfinite);
  EXPECT_EQ(status.code(), StatusCode::kOutOfRange);
  EXPECT_EQ(AttachedCause(Annotate(status, "step 3")), "NONFINITE");
}

TEST(FailureCause, IsEmptyWhereNothingWasAttached) {
  EXPECT_EQ(AttachedCause(OutOfRange("x")), "");
  EXPECT_TRUE(WithCause(OkStatus(), cause::kData).ok());
}

}  // namespace
}  // namespace troupe
