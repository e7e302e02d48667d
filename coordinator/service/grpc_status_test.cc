#include "coordinator/service/grpc_status.h"

#include <gtest/gtest.h>

#include "plan/job/violation.h"

namespace troupe {
namespace {

TEST(GrpcStatus, AReasonOfAWorkerBeginsNoLineOfAClient) {
  const grpc::Status status = ToGrpcStatus(
      Aborted("checkpoint attempt 3 of job a was aborted: {}", "no space\nforged\x1b[2J\xe9"));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::ABORTED);
  EXPECT_EQ(status.error_message(),
            "checkpoint attempt 3 of job a was aborted: no space\\nforged\\u001b[2J\\xe9");
}

TEST(GrpcStatus, ViolationsKeepTheirLines) {
  Violations violations;
  violations.Add("a", "is {}", "1\nc is 3");
  violations.Add("b", "is 2");
  EXPECT_EQ(ToGrpcStatus(violations.ToStatus()).error_message(), "a is 1\\nc is 3\nb is 2");
}

}  // namespace
}  // namespace troupe
