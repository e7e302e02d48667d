#include "cli/output/job_table.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

constexpr int64_t kTableSecond = 1'000'000'000;
constexpr int64_t kTableNow = 1'800'000'000 * kTableSecond;

ListedJob Listed(const char* name, v1::JobState state, int64_t step, int64_t age_seconds) {
  ListedJob listed;
  listed.job.set_name(name);
  listed.job.set_state(state);
  listed.job.set_step(step);
  listed.job.set_steps(200);
  listed.job.set_create_wall_time_ns(kTableNow - age_seconds * kTableSecond);
  return listed;
}

TEST(JobTableTest, HasAHeaderAndProgressLossAgeAndReason) {
  std::vector<ListedJob> jobs = {Listed("jobs/headers", v1::JOB_STATE_RUNNING, 119, 754),
                                 Listed("jobs/lab.b", v1::JOB_STATE_FAILED, 7, 200000),
                                 Listed("jobs/c", v1::JOB_STATE_QUEUED, 0, 3)};
  jobs[0].loss = 2.51234;
  jobs[1].loss = 10.5;
  jobs[1].job.mutable_failure()->set_cause("RANK_CRASHED");
  jobs[2].job.set_waiting_for("waits behind jobs/headers");
  EXPECT_EQ(JobTableText(jobs, kTableNow, false),
            "NAME          STATE       STEP  DONE     LOSS     AGE  REASON\n"
            "jobs/headers  RUNNING  119/200   59%   2.5123  12 min\n"
            "jobs/lab.b    FAILED     7/200    3%  10.5000     2 d  RANK_CRASHED\n"
            "jobs/c        QUEUED     0/200    0%        -     3 s  waits behind jobs/headers\n");
}

TEST(JobTableTest, TheNewestRunningJobsAreOfMostInterest) {
  EXPECT_EQ(OrderOfInterest({Listed("jobs/a", v1::JOB_STATE_SUCCEEDED, 9, 9),
                             Listed("jobs/b", v1::JOB_STATE_RUNNING, 9, 8),
                             Listed("jobs/c", v1::JOB_STATE_RECOVERING, 9, 7),
                             Listed("jobs/d", v1::JOB_STATE_RUNNING, 9, 6),
                             Listed("jobs/e", v1::JOB_STATE_FAILED, 9, 5)}),
            (std::vector<size_t>{3, 1, 2, 4, 0}));
  EXPECT_TRUE(OrderOfInterest({}).empty());
}

TEST(JobTableTest, AScriptFindsNameAndStateAtTheBeginningOfALine) {
  const std::string text =
      JobTableText({Listed("jobs/a", v1::JOB_STATE_SUCCEEDED, 200, 3)}, kTableNow, false);
  EXPECT_NE(text.find("\njobs/a  SUCCEEDED  "), std::string::npos)
      << "deploy/slurm/troupe.sbatch: " << text;
}

TEST(JobTableTest, StatesAreColoured) {
  std::vector<ListedJob> jobs = {Listed("jobs/a", v1::JOB_STATE_CHECKPOINTING, 7, 3)};
  jobs[0].job.set_moving("leaves worker-1");
  EXPECT_NE(JobTableText(jobs, kTableNow, true).find("\033[33mMOVING\033[0m"), std::string::npos);
  EXPECT_NE(JobTableText(jobs, kTableNow, true).find("leaves worker-1"), std::string::npos);
}

}  // namespace
}  // namespace troupe
