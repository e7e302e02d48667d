#include "cli/output/describe_text.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

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

TEST(DescribeTextTest, ARunningJobHasProgressSpeedAndItsLastCheckpoint) {
  v1::StepEvent step;
  step.set_step(121);
  step.set_loss(2.5);
  step.set_tokens_per_second(1234);
  EXPECT_EQ(DescribeText(Running(), step),
            "jobs/a: RUNNING, step 120 of 200\n"
            "layout           4 ranks, pipe 2 × tensor 2\n"
            "speed            1234 tokens/s, loss 2.500000 at step 121\n"
            "last checkpoint  step 100, /c/100\n"
            "restarts         0\n");
  step.set_mfu(0.421);
  EXPECT_NE(DescribeText(Running(), step).find("loss 2.500000, MFU 42.1% at step 121\n"),
            std::string::npos);
}

TEST(DescribeTextTest, AQueuedJobNamesWhatItWaitsFor) {
  v1::Job job;
  job.set_name("jobs/b");
  job.set_state(v1::JOB_STATE_QUEUED);
  job.set_steps(40);
  job.set_waiting_for("waits behind jobs/a");
  job.set_creator("spiffe://lab/submitter/ann");
  job.mutable_layout()->set_tensor(1);
  *job.mutable_submitted_layout() = job.layout();
  EXPECT_EQ(DescribeText(job, std::nullopt),
            "jobs/b: QUEUED, step 0 of 40\n"
            "created by       spiffe://lab/submitter/ann\n"
            "waiting          waits behind jobs/a\n"
            "layout           1 rank\n"
            "last checkpoint  none\n"
            "restarts         0\n");
}

TEST(DescribeTextTest, AJobThatMovesStatesTheReason) {
  v1::Job job;
  job.set_name("jobs/c");
  job.set_state(v1::JOB_STATE_RECOVERING);
  job.set_step(7);
  job.set_steps(40);
  job.set_moves(1);
  job.set_moving("leaves worker-1, which is draining (SIGTERM), after step 7");
  EXPECT_EQ(DescribeText(job, std::nullopt),
            "jobs/c: MOVING, step 7 of 40\n"
            "moving           leaves worker-1, which is draining (SIGTERM), after step 7\n"
            "last checkpoint  none\n"
            "restarts         0\n"
            "moves            1\n");
}

TEST(DescribeTextTest, AJobThatWasShrunkAndFailedStatesBothLayoutsAndBothCauses) {
  v1::Job job = Running();
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
  EXPECT_EQ(DescribeText(job, std::nullopt),
            "jobs/a: FAILED, step 120 of 200\n"
            "failure          RESTART_BUDGET: 2 of 2 restarts are used\n"
            "layout           2 ranks, tensor 2; submitted with 4 ranks, pipe 2 × tensor 2\n"
            "last checkpoint  step 100, /c/100\n"
            "restarts         2\n"
            "moves            1\n"
            "last failure     RANK_CRASHED of rank 1 on worker-0\n");
}

TEST(DescribeTextTest, ATextOfOthersStaysOnItsLine) {
  v1::Job job = Running();
  job.mutable_last_failure()->set_cause("RANK_CRASHED");
  job.mutable_last_failure()->set_message("lost\nfailure          none\x1b[2J\u202e");
  EXPECT_TRUE(DescribeText(job, std::nullopt)
                  .ends_with("last failure     RANK_CRASHED of rank 0: lost\\nfailure          "
                             "none\\u001b[2J\\u202e\n"));
}

}  // namespace
}  // namespace troupe
