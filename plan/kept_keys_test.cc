#include "plan/kept_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/job_defaults.h"
#include "plan/violation.h"

namespace troupe {
namespace {

TEST(KeptKeysTest, EachChangedKeyIsNamedWithBothValues) {
  v1::JobSpec before;
  ApplyDefaults(&before);
  v1::JobSpec after = before;
  after.mutable_training()->set_steps(7);
  after.mutable_optimizer()->set_lr(1);
  EXPECT_TRUE(CheckKeptKeys(before, after).ok());

  after.mutable_model()->set_hidden_size(512);
  after.mutable_model()->mutable_rope_scaling()->set_factor(4);
  after.mutable_parallelism()->set_tensor_parallel_degree(2);
  const Status status = CheckKeptKeys(before, after);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  const std::vector<Violation> violations = ViolationsOf(status);
  ASSERT_EQ(violations.size(), 3u) << status;
  EXPECT_EQ(violations[0].field, "model.hidden_size");
  EXPECT_THAT(violations[0].description, ::testing::HasSubstr("is 512, and"));
  EXPECT_THAT(violations[0].description, ::testing::HasSubstr("keeps the 256"));
  EXPECT_EQ(violations[1].field, "model.rope_scaling.factor");
  EXPECT_EQ(violations[2].field, "parallelism.tensor_parallel_degree");
}

}  // namespace
}  // namespace troupe
