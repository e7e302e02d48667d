#include "cli/output/list_filter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using ::testing::HasSubstr;

v1::Job JobIn(const std::string& name, v1::JobState state) {
  v1::Job job;
  job.set_name(name);
  job.set_state(state);
  return job;
}

TEST(ListFilterTest, AcceptsEveryJobWithoutConditions) {
  const auto filter = ListFilter::Make({}, std::nullopt);
  ASSERT_TRUE(filter.ok()) << filter.status();
  EXPECT_TRUE(filter->Accepts(JobIn("jobs/a", v1::JOB_STATE_QUEUED)));
  EXPECT_EQ(filter->NoneText(0), "there are no jobs");
}

TEST(ListFilterTest, AcceptsAnyOfTheStatesInTheNamespace) {
  const auto filter = ListFilter::Make({"running", "QUEUED"}, "lab");
  ASSERT_TRUE(filter.ok()) << filter.status();
  EXPECT_TRUE(filter->Accepts(JobIn("jobs/lab.a", v1::JOB_STATE_QUEUED)));
  EXPECT_TRUE(filter->Accepts(JobIn("jobs/lab.a", v1::JOB_STATE_RUNNING)));
  EXPECT_FALSE(filter->Accepts(JobIn("jobs/lab.a", v1::JOB_STATE_FAILED)));
  EXPECT_FALSE(filter->Accepts(JobIn("jobs/a", v1::JOB_STATE_RUNNING)));
  EXPECT_EQ(filter->NoneText(3), "none of 3 jobs is RUNNING or QUEUED in the namespace lab");
  EXPECT_EQ(filter->NoneText(1), "the only job is not RUNNING or QUEUED in the namespace lab");
}

TEST(ListFilterTest, AJobWithoutADotIsInTheDefaultNamespace) {
  const auto filter = ListFilter::Make({}, "default");
  ASSERT_TRUE(filter.ok()) << filter.status();
  EXPECT_TRUE(filter->Accepts(JobIn("jobs/a", v1::JOB_STATE_QUEUED)));
  EXPECT_FALSE(filter->Accepts(JobIn("jobs/lab.a", v1::JOB_STATE_QUEUED)));
  EXPECT_EQ(filter->NoneText(2), "none of 2 jobs is in the namespace default");
}

TEST(ListFilterTest, AJobThatMovesIsAlsoInTheStateBelow) {
  v1::Job job = JobIn("jobs/a", v1::JOB_STATE_RECOVERING);
  job.set_moving("leaves worker-1");
  EXPECT_TRUE(ListFilter::Make({"MOVING"}, std::nullopt)->Accepts(job));
  EXPECT_TRUE(ListFilter::Make({"RECOVERING"}, std::nullopt)->Accepts(job));
  EXPECT_FALSE(ListFilter::Make({"RUNNING"}, std::nullopt)->Accepts(job));
}

TEST(ListFilterTest, RefusesWhatIsNoStateAndNoNamespace) {
  const auto state = ListFilter::Make({"done"}, std::nullopt);
  EXPECT_EQ(state.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Message(state.status())),
              HasSubstr("--state is \"done\"; must be QUEUED, STARTING, RUNNING, "));
  const auto named = ListFilter::Make({}, "Lab.x");
  EXPECT_EQ(named.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Message(named.status())),
              HasSubstr("--namespace is \"Lab.x\"; must match"));
}

}  // namespace
}  // namespace troupe
