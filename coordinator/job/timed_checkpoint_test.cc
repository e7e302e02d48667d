// Tests of checkpoints by time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/job/timed_checkpoint.h"
#include "coordinator/test_cluster.h"

namespace troupe {
namespace {

using ::testing::Contains;
using Kind = v1::CoordinatorMessage;

class TimedCheckpoint : public ::testing::Test {
 protected:
  TimedCheckpoint() { cluster_.wall_ns = 1'000'000'000'000; }

  void Run(int64_t interval_seconds, int64_t interval = 0) {
    cluster_.Connect("worker-0");
    v1::JobSpec spec = TestSpec("a", 1, 1'000'000);
    spec.mutable_checkpoint()->set_interval(interval);
    spec.mutable_checkpoint()->set_interval_seconds(interval_seconds);
    cluster_.Submit(spec);
    cluster_.StartRanks("a");
  }
  // Advances both clocks, with one step per second.
  void Train(int seconds) {
    for (int i = 0; i < seconds; ++i) {
      cluster_.wall_ns += 1'000'000'000;
      cluster_.Pass(std::chrono::seconds(1));
      cluster_.Report("a", ++step_);
    }
  }
  int Requests() { return cluster_.Count("worker-0", Kind::kCheckpointRequest); }
  void CommitRequested() {
    const v1::CheckpointIntent intent =
        cluster_.Last("worker-0", Kind::kCheckpointRequest)->checkpoint_request().intent();
    EXPECT_EQ(intent.step(), 0);
    cluster_.Commit("a", intent.attempt(), step_);
  }

  TestCluster cluster_;
  int64_t step_ = 0;
};

TEST_F(TimedCheckpoint, IsAskedForOnceTheTimeSinceTheLastCommitHasPassed) {
  Run(100);
  Train(99);
  EXPECT_EQ(Requests(), 0);
  Train(2);
  EXPECT_EQ(Requests(), 1);
  Train(30);
  EXPECT_EQ(Requests(), 1) << "one is in flight";
  CommitRequested();
  Train(99 - 1);
  EXPECT_EQ(Requests(), 1);
  Train(3);
  EXPECT_EQ(Requests(), 2);
}

TEST_F(TimedCheckpoint, IsNotAskedForWhereStepsOrNothingIsStated) {
  Run(0);
  Train(4000);
  EXPECT_EQ(Requests(), 0);
}

TEST_F(TimedCheckpoint, AStatedNumberOfStepsWins) {
  Run(100, 1'000'000);
  Train(300);
  EXPECT_EQ(Requests(), 0);
}

TEST_F(TimedCheckpoint, ARestartOfTheCoordinatorDoesNotBeginTheTimeAnew) {
  Run(100);
  Train(60);
  cluster_.Restart();
  cluster_.Reconnect("worker-0");
  EXPECT_EQ(cluster_.job("a").group->phase, GroupPhase::kRunning);
  Train(38);
  EXPECT_EQ(Requests(), 0);
  Train(3);
  EXPECT_EQ(Requests(), 1);
}

TEST_F(TimedCheckpoint, NorDoesARecovery) {
  Run(100);
  Train(60);
  cluster_.Crash("a", 0);
  cluster_.Pass(std::chrono::seconds(2));
  step_ = 0;
  cluster_.StartRanks("a");
  cluster_.worker("worker-0").inbox.clear();
  Train(38);
  EXPECT_EQ(Requests(), 0);
  Train(4);
  EXPECT_EQ(Requests(), 1);
}

TEST_F(TimedCheckpoint, AClockThatWasSetBackOrAheadMovesItByOneIntervalAtMost) {
  Run(100);
  Train(60);
  cluster_.wall_ns -= 3'600'000'000'000;
  cluster_.Restart();
  cluster_.Reconnect("worker-0");
  Train(99);
  EXPECT_EQ(Requests(), 0);
  Train(2);
  EXPECT_EQ(Requests(), 1);
}

TEST_F(TimedCheckpoint, AnAbortedOneIsTriedAgainAfterAWhileNotAtEveryStep) {
  Run(100);
  Train(101);
  ASSERT_EQ(Requests(), 1);
  v1::WorkerMessage failed;
  failed.mutable_shard_failed()->set_job("a");
  failed.mutable_shard_failed()->set_group_epoch(1);
  failed.mutable_shard_failed()->set_attempt(1);
  failed.mutable_shard_failed()->set_reason("no space");
  cluster_.SendFrom("worker-0", failed);
  EXPECT_THAT(cluster_.Events("a"), Contains("CHECKPOINT_ABORTED"));
  Train(58);
  EXPECT_EQ(Requests(), 1);
  Train(4);
  EXPECT_EQ(Requests(), 2);
}

}  // namespace
}  // namespace troupe
