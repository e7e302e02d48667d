#include "cli/output/job_table.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "base/text/display_width.h"

namespace troupe {
namespace {

constexpr int64_t kTableSecond = 1'000'000'000;
constexpr int64_t kTableNow = 1'800'000'000 * kTableSecond;

v1::Job Listed(const std::string& name, v1::JobState state, int64_t step, int64_t age_seconds) {
  v1::Job job;
  job.set_name(name);
  job.set_state(state);
  job.set_step(step);
  job.set_steps(200);
  job.set_create_wall_time_ns(kTableNow - age_seconds * kTableSecond);
  return job;
}

TEST(JobTableTest, HasAHeaderAndProgressLossAgeAndReason) {
  std::vector<v1::Job> jobs = {Listed("jobs/headers", v1::JOB_STATE_RUNNING, 119, 754),
                               Listed("jobs/lab.b", v1::JOB_STATE_FAILED, 7, 200000),
                               Listed("jobs/c", v1::JOB_STATE_QUEUED, 0, 3)};
  jobs[0].set_loss(2.51234);
  jobs[1].set_loss(10.5);
  jobs[1].mutable_failure()->set_cause("RANK_CRASHED");
  jobs[2].set_waiting_for("waits behind jobs/headers");
  EXPECT_EQ(JobTableText(jobs, kTableNow, {}),
            "NAME          STATE       STEP  DONE     LOSS     AGE  REASON\n"
            "jobs/headers  RUNNING  119/200   59%   2.5123  12 min\n"
            "jobs/lab.b    FAILED     7/200    3%  10.5000     2 d  RANK_CRASHED\n"
            "jobs/c        QUEUED     0/200    0%        -     3 s  waits behind jobs/headers\n");
}

TEST(JobTableTest, AScriptFindsNameAndStateAtTheBeginningOfALine) {
  const std::string text =
      JobTableText({Listed("jobs/a", v1::JOB_STATE_SUCCEEDED, 200, 3)}, kTableNow, {});
  EXPECT_NE(text.find("\njobs/a  SUCCEEDED  "), std::string::npos)
      << "deploy/slurm/troupe.sbatch: " << text;
}

TEST(JobTableTest, StatesAreColoured) {
  std::vector<v1::Job> jobs = {Listed("jobs/a", v1::JOB_STATE_CHECKPOINTING, 7, 3)};
  jobs[0].set_moving("leaves worker-1");
  EXPECT_NE(JobTableText(jobs, kTableNow, {.colours = true}).find("\033[33mMOVING\033[0m"),
            std::string::npos);
  EXPECT_NE(JobTableText(jobs, kTableNow, {.colours = true}).find("leaves worker-1"),
            std::string::npos);
}

// A name and a reason that are as long as they may be, or longer than a line.
v1::Job LongListed() {
  v1::Job job = Listed("jobs/" + std::string(30, 'a') + std::string(33, 'b'),
                       v1::JOB_STATE_CHECKPOINTING, 119, 754);
  job.set_loss(2.51234);
  job.set_waiting_for("waits for 8 cuda devices with 80 GB each, of which 3 are free in /h/ada/" +
                      std::string(80, 'x'));
  return job;
}

TEST(JobTableTest, OnATerminalLongNamesAreShortenedAndReasonsAreBelow) {
  EXPECT_EQ(JobTableText({LongListed(), Listed("jobs/c", v1::JOB_STATE_QUEUED, 0, 3)}, kTableNow,
                         {.columns = 80, .directory = "/h/ada"}),
            "NAME                                STATE             STEP  DONE    LOSS     AGE\n"
            "jobs/aaaaaaaaaaaa…bbbbbbbbbbbbbbbb  CHECKPOINTING  119/200   59%  2.5123  12 min\n"
            "  reason: waits for 8 cuda devices with 80 GB each, of which 3 are free in\n"
            "    xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n"
            "    xxxxxx\n"
            "jobs/c                              QUEUED           0/200    0%       -     3 s\n");
  EXPECT_TRUE(JobTableText({LongListed()}, kTableNow, {.columns = 50})
                  .starts_with("NAME                STATE             STEP    LOSS\n"
                               "jobs/aaaa…bbbbbbbb  CHECKPOINTING  119/200  2.5123\n"
                               "  reason: waits for 8 cuda devices with 80 GB\n"
                               "    each, of which 3 are free in"));
}

TEST(JobTableTest, NoLineIsWiderThanTheTerminal) {
  v1::Job job = LongListed();
  for (size_t columns = 50; columns <= 200; ++columns) {
    std::istringstream lines(JobTableText({job}, kTableNow, {.columns = columns}));
    std::string all;
    for (std::string line; std::getline(lines, line); all += line)
      EXPECT_LE(DisplayColumns(line), columns) << line;
    for (const char* part : {"CHECKPOINTING", "119/200", "devices"})
      EXPECT_NE(all.find(part), std::string::npos) << columns << ": " << all;
  }
  const std::string whole = JobTableText({job}, kTableNow, {});
  EXPECT_NE(whole.find("\n" + job.name() + "  CHECKPOINTING  "), std::string::npos)
      << "a script reads names that are whole";
  EXPECT_NE(whole.find("  " + job.waiting_for() + "\n"), std::string::npos);
}

TEST(JobTableTest, AJobThatRecoversStatesTheCauseOfTheLastFailure) {
  v1::Job job = Listed("jobs/a", v1::JOB_STATE_RECOVERING, 7, 3);
  job.mutable_last_failure()->set_cause("RANK_CRASHED");
  EXPECT_NE(JobTableText({job}, kTableNow, {}).find("  RANK_CRASHED\n"), std::string::npos);
  job.set_state(v1::JOB_STATE_RUNNING);
  EXPECT_EQ(JobTableText({job}, kTableNow, {}).find("RANK_CRASHED"), std::string::npos);
}

}  // namespace
}  // namespace troupe
