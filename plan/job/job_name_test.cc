#include "plan/job/job_name.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(JobNameTest, HasTwoForms) {
  EXPECT_EQ(JobName("x"), "jobs/x");
  EXPECT_EQ(JobName("jobs/x"), "jobs/x");
  EXPECT_EQ(JobId("jobs/x"), "x");
  EXPECT_EQ(JobId("x"), "x");
}

}  // namespace
}  // namespace troupe
