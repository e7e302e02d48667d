#include "cli/output/describe_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "base/text/display_width.h"

namespace troupe {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kNow = 1'800'000'000 * kSecond;

v1::Job Running() {
  v1::Job job;
  job.set_name("jobs/a");
  job.set_state(v1::JOB_STATE_RUNNING);
  job.set_step(120);
  job.set_steps(200);
  job.mutable_layout()->set_pipe(2);
  job.mutable_layout()->set_data_replicate(1);
  job.mutable_layout()->set_tensor(2);
  *job.mutable_submitted_layout() = job.layout();
  for (const int64_t step : {50, 100, 110}) {
    v1::CheckpointRecord& checkpoint = *job.add_checkpoints();
    checkpoint.set_step(step);
    checkpoint.set_path("/c/" + std::to_string(step));
    checkpoint.set_state(step <= 100 ? v1::CHECKPOINT_STATE_COMMITTED
                                     : v1::CHECKPOINT_STATE_QUARANTINED);
  }
  return job;
}

TEST(DescribeTextTest, ARunningJobHasProgressSpeedAndItsCheckpoints) {
  v1::StepEvent step;
  step.set_step(121);
  step.set_loss(2.5);
  step.set_tokens_per_second(1234);
  EXPECT_EQ(DescribeText(Running(), {.last_step = step}),
            "jobs/a: RUNNING, step 120 of 200\n"
            "layout           4 ranks, pipe 2 × tensor 2\n"
            "speed            1234 tokens/s, loss 2.500000 at step 121\n"
            "last checkpoint  step 100, /c/100\n"
            "restarts         0\n"
            "\n"
            "STEP  CHECKPOINT   SIZE  IN /c/\n"
            "  50  COMMITTED     0 B  50\n"
            " 100  COMMITTED     0 B  100\n"
            " 110  QUARANTINED   0 B  110\n");
  step.set_mfu(0.421);
  EXPECT_THAT(DescribeText(Running(), {.last_step = step}),
              HasSubstr("loss 2.500000, MFU 42.1% at step 121\n"));
}

TEST(DescribeTextTest, AQueuedJobNamesWhatItWaitsFor) {
  v1::Job job;
  job.set_name("jobs/b");
  job.set_state(v1::JOB_STATE_QUEUED);
  job.set_steps(40);
  job.set_waiting_for("waits behind jobs/a");
  job.set_creator("spiffe://lab/submitter/ann");
  job.set_create_wall_time_ns(kNow - 754 * kSecond);
  job.mutable_layout()->set_tensor(1);
  *job.mutable_submitted_layout() = job.layout();
  job.mutable_plan()->set_digest("sha256:0a");
  job.mutable_plan()->add_data()->set_path("/data/a");
  EXPECT_EQ(DescribeText(job, {.now_ns = kNow}),
            "jobs/b: QUEUED, step 0 of 40\n"
            "created          2027-01-15T07:47:26Z, 12 min ago\n"
            "created by       spiffe://lab/submitter/ann\n"
            "waiting          waits behind jobs/a\n"
            "layout           1 rank\n"
            "data             /data/a\n"
            "last checkpoint  none\n"
            "restarts         0\n"
            "plan             sha256:0a\n");
  job.mutable_plan()->mutable_data(0)->set_share(0.75);
  job.mutable_plan()->add_data()->set_path("/data/b");
  job.mutable_plan()->mutable_data(1)->set_share(0.25);
  EXPECT_THAT(DescribeText(job, {}), HasSubstr("data             /data/a 75.0%, /data/b 25.0%\n"));
}

TEST(DescribeTextTest, AJobThatMovesStatesTheReason) {
  v1::Job job;
  job.set_name("jobs/c");
  job.set_state(v1::JOB_STATE_RECOVERING);
  job.set_step(7);
  job.set_steps(40);
  job.set_moves(1);
  job.set_moving("leaves worker-1, which is draining (SIGTERM), after step 7");
  EXPECT_EQ(DescribeText(job, {}),
            "jobs/c: MOVING, step 7 of 40\n"
            "moving           leaves worker-1, which is draining (SIGTERM), after step 7\n"
            "last checkpoint  none\n"
            "restarts         0\n"
            "moves            1\n");
  EXPECT_THAT(DescribeText(job, {.style = {.colours = true}}),
              HasSubstr("jobs/c: \033[33mMOVING\033[0m, "));
}

TEST(DescribeTextTest, AJobThatWasShrunkAndFailedStatesBothLayoutsAndBothCauses) {
  v1::Job job = Running();
  job.clear_checkpoints();
  job.set_state(v1::JOB_STATE_FAILED);
  job.set_restarts(2);
  job.set_moves(1);
  job.mutable_layout()->set_pipe(1);
  job.mutable_failure()->set_cause("RESTART_BUDGET");
  job.mutable_failure()->set_message("2 of 2 restarts are used");
  job.mutable_failure()->set_rank(-1);
  job.mutable_last_failure()->set_cause("RANK_CRASHED");
  job.mutable_last_failure()->set_rank(1);
  job.mutable_last_failure()->set_worker("worker-0");
  job.mutable_last_failure()->set_signal(9);
  job.mutable_last_failure()->set_last_operation("all_reduce");
  EXPECT_EQ(DescribeText(job, {}),
            "jobs/a: FAILED, step 120 of 200\n"
            "failure          RESTART_BUDGET: 2 of 2 restarts are used\n"
            "layout           2 ranks, tensor 2; submitted with 4 ranks, pipe 2 × tensor 2\n"
            "last checkpoint  none\n"
            "restarts         2\n"
            "moves            1\n"
            "last failure     RANK_CRASHED of rank 1 on worker-0, signal 9, in all_reduce\n");
}

TEST(DescribeTextTest, ACauseIsPrintedOnce) {
  v1::Job job = Running();
  job.set_state(v1::JOB_STATE_FAILED);
  v1::Failure& last = *job.mutable_last_failure();
  last.set_cause("DATA");
  last.set_rank(1);
  last.set_message("the files are shorter");
  *job.mutable_failure() = last;
  EXPECT_THAT(DescribeText(job, {}), Not(HasSubstr("last failure")));
  job.mutable_failure()->set_cause("RESTART_BUDGET");
  job.mutable_failure()->set_message(
      "3 recoveries from its own faults without a step beyond 7; the last failure was DATA: rank "
      "1: the files are shorter");
  EXPECT_THAT(DescribeText(job, {}), Not(HasSubstr("\nlast failure")));
  last.set_message("the files are longer");
  EXPECT_THAT(DescribeText(job, {}),
              HasSubstr("\nlast failure     DATA of rank 1: the files are longer\n"));
}

TEST(DescribeTextTest, RanksHaveTheirPlaceInTheMeshAndTheirCores) {
  v1::Job job = Running();
  job.clear_checkpoints();
  for (int rank = 0; rank < 4; ++rank) {
    v1::RankStatus& status = *job.add_ranks();
    status.set_rank(rank);
    status.set_worker(rank < 2 ? "worker-0" : "worker-10");
    status.set_device(rank % 2);
    if (rank != 3) status.set_pid(int64_t{1000} * (rank + 9));
    status.mutable_coordinates()->set_pipe(rank / 2);
    status.mutable_coordinates()->set_tensor(rank % 2);
  }
  job.mutable_ranks(0)->mutable_cores()->add_cores(0);
  job.mutable_ranks(0)->mutable_cores()->set_shared_by(2);
  EXPECT_THAT(DescribeText(job, {}),
              EndsWith("\n\n"
                       "RANK  WORKER     DEVICE    PID  PLACE             CORES\n"
                       "   0  worker-0        0   9000  pipe 0, tensor 0  0 (shared by 2 ranks)\n"
                       "   1  worker-0        1  10000  pipe 0, tensor 1\n"
                       "   2  worker-10       0  11000  pipe 1, tensor 0\n"
                       "   3  worker-10       1         pipe 1, tensor 1\n"));
}

TEST(DescribeTextTest, CheckpointsHaveSizeAgeAndWhatIsKnownOfThem) {
  v1::Job job = Running();
  v1::CheckpointRecord& first = *job.mutable_checkpoints(0);
  first.set_bytes(37'140'436);
  first.set_commit_wall_time_ns(kNow - 300 * kSecond);
  first.set_verified(true);
  first.set_pinned(true);
  job.mutable_checkpoints(1)->set_doubted_by("worker-1");
  job.mutable_checkpoints(1)->set_doubt("rank-0.shard: block 3");
  job.mutable_checkpoints(2)->set_path("/elsewhere/110");
  job.mutable_checkpoints(2)->set_reason("rank-1.shard is missing");
  EXPECT_THAT(DescribeText(job, {.now_ns = kNow}),
              EndsWith("\n\n"
                       "STEP  CHECKPOINT      SIZE    AGE  NOTES             PATH\n"
                       "  50  COMMITTED    37.1 MB  5 min  verified, pinned  /c/50\n"
                       " 100  COMMITTED        0 B         doubted           /c/100\n"
                       "  doubted by worker-1: rank-0.shard: block 3\n"
                       " 110  QUARANTINED      0 B                           /elsewhere/110\n"
                       "  rank-1.shard is missing\n"));
}

TEST(DescribeTextTest, ATextOfOthersStaysOnItsLine) {
  v1::Job job = Running();
  job.clear_checkpoints();
  job.mutable_last_failure()->set_cause("RANK_CRASHED");
  job.mutable_last_failure()->set_message("lost\nfailure          none\x1b[2J\u202e");
  EXPECT_THAT(DescribeText(job, {}),
              EndsWith("last failure     RANK_CRASHED of rank 0: lost\\nfailure          "
                       "none\\u001b[2J\\u202e\n"));
  job.add_checkpoints()->set_state(v1::CHECKPOINT_STATE_COMMITTED);
  job.mutable_checkpoints(0)->set_path("/c\x1b/10");
  EXPECT_THAT(DescribeText(job, {}), HasSubstr("IN /c\\u001b/\n"));
}

TEST(DescribeTextTest, WhyTheLastStepIsNotSavedIsStated) {
  v1::Job job = Running();
  job.clear_checkpoints();
  job.set_step(200);
  EXPECT_THAT(DescribeText(job, {.save_failure = "attempt 3: mkdir /c: Permission denied"}),
              HasSubstr("\nnot saved        attempt 3: mkdir /c: Permission denied\n"));
}

TEST(DescribeTextTest, PathsBelowTheWorkingDirectoryAreRelative) {
  v1::Job job = Running();
  for (v1::CheckpointRecord& checkpoint : *job.mutable_checkpoints())
    checkpoint.set_path("/h/ada" + checkpoint.path());
  job.mutable_plan()->add_data()->set_path("/h/ada/data/a");
  job.mutable_last_failure()->set_cause("STORAGE");
  job.mutable_last_failure()->set_rank(-1);
  job.mutable_last_failure()->set_message("open /h/ada/data/a.bin: Permission denied");
  const std::string text = DescribeText(job, {.style = {.directory = "/h/ada"}});
  EXPECT_THAT(text, HasSubstr("data             data/a\n"));
  EXPECT_THAT(text, HasSubstr("last checkpoint  step 100, c/100\n"));
  EXPECT_THAT(text, HasSubstr("STORAGE: open data/a.bin: Permission denied\n"));
  EXPECT_THAT(text, HasSubstr("SIZE  IN c/\n"));
  job.mutable_checkpoints(2)->set_path("/elsewhere/110");
  EXPECT_THAT(DescribeText(job, {.style = {.directory = "/h/ada"}}), HasSubstr("0 B  c/100\n"));
}

// A job whose names and paths are as long as they may be.
v1::Job LongJob() {
  const std::string name(63, 'n');
  v1::Job job = Running();
  job.set_name("jobs/" + name);
  job.set_state(v1::JOB_STATE_CHECKPOINTING);
  job.set_waiting_for("waits for 8 cuda devices with 80 GB each, of which 3 are free");
  job.mutable_plan()->add_data()->set_path("/data/" + name + "/" + name + "/train");
  job.mutable_plan()->set_digest("sha256:" + std::string(64, '0'));
  for (v1::CheckpointRecord& checkpoint : *job.mutable_checkpoints()) {
    checkpoint.set_path("/checkpoints/" + name + "/" + name +
                        "/step-00000100-epoch-1-attempt-1-at-1795502192641693564");
    checkpoint.set_verified(true);
    checkpoint.set_pinned(true);
  }
  v1::RankStatus& rank = *job.add_ranks();
  rank.set_worker(name);
  rank.set_pid(4194304);
  rank.mutable_coordinates()->set_pipe(1);
  rank.mutable_cores()->add_cores(0);
  rank.mutable_cores()->set_shared_by(2);
  return job;
}

TEST(DescribeTextTest, NoLineIsWiderThanTheTerminal) {
  for (size_t columns = 50; columns <= 120; ++columns) {
    std::istringstream lines(DescribeText(LongJob(), {.style = {.columns = columns}}));
    std::string all;
    for (std::string line; std::getline(lines, line); all += line)
      EXPECT_LE(DisplayColumns(line), columns) << line;
    for (const char* part : {"CHECKPOINTING, step 120 of 200", "4194304", "COMMITTED"})
      EXPECT_THAT(all, HasSubstr(part)) << columns;
  }
  EXPECT_THAT(DescribeText(LongJob(), {}),
              HasSubstr("last checkpoint  step 100, " + LongJob().checkpoints(1).path() + "\n"))
      << "a script reads paths that are whole";
}

TEST(DescribeTextTest, OnANarrowTerminalPlacesAndNotesAreBelowTheirRows) {
  const std::string text = DescribeText(LongJob(), {.style = {.columns = 50}});
  EXPECT_THAT(text, HasSubstr("RANK  WORKER                       DEVICE      PID\n"
                              "   0  nnnnnnnnnnnnn…nnnnnnnnnnnnn       0  4194304\n"
                              "  place: pipe 1, tensor 0; cores: 0 (shared by 2\n"
                              "    ranks)\n"));
  EXPECT_THAT(text, HasSubstr("\n  50  COMMITTED     0 B  step-0000010…192641693564\n"
                              "  notes: verified, pinned\n"));
}

}  // namespace
}  // namespace troupe
