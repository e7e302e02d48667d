// Tests what becomes of a cancelled job: its state, the steps that it keeps, and the replies.
#include "coordinator/job/cancel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/state/stop.h"
#include "coordinator/test_cluster.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

enum class CancelMode { kNow, kIfTraining, kStrict };

CallId CancelIn(CancelMode mode, TestCluster& cluster, const std::string& job = "a") {
  CancelJobCall call{cluster.next_call++, {}};
  call.request.set_name(job);
  call.request.set_checkpoint(mode == CancelMode::kStrict);
  call.request.set_checkpoint_if_training(mode == CancelMode::kIfTraining);
  cluster.Do(call);
  return call.call;
}

const Reply* AnswerTo(const TestCluster& cluster, CallId call) {
  for (const Reply& reply : cluster.replies) {
    if (reply.call == call) return &reply;
  }
  return nullptr;
}

bool IsAnsweredWithJob(const TestCluster& cluster, CallId call) {
  const Reply* const reply = AnswerTo(cluster, call);
  return reply != nullptr && reply->status.ok();
}

// The message of the newest event.
std::string NewestMessage(const TestCluster& cluster) {
  for (auto update = cluster.updates.rbegin(); update != cluster.updates.rend(); ++update) {
    if (update->update.has_event()) return update->update.event().message();
  }
  return "";
}

// Job `a` on two workers, which has committed step 10 and applied step 13.
void TrainPastACommit(TestCluster& cluster) {
  RunJob(cluster, 2, 2, 30);
  for (int64_t step = 1; step <= 10; ++step) {
    for (const int rank : {0, 1}) cluster.Report("a", step, rank);
  }
  cluster.Commit("a", AttemptOf(cluster, 10), 10);
  for (int64_t step = 11; step <= 13; ++step) {
    for (const int rank : {0, 1}) cluster.Report("a", step, rank);
  }
}

void FailToWrite(TestCluster& cluster, int64_t attempt) {
  v1::WorkerMessage failed;
  failed.mutable_shard_failed()->set_job("a");
  failed.mutable_shard_failed()->set_group_epoch(cluster.job("a").record.group_epoch());
  failed.mutable_shard_failed()->set_rank(1);
  failed.mutable_shard_failed()->set_attempt(attempt);
  failed.mutable_shard_failed()->set_reason("Input/output error");
  cluster.SendFrom("worker-1", failed);
}

v1::JobState StateOfA(const TestCluster& cluster) { return cluster.job("a").record.state(); }

void PassWhileGrouped(TestCluster& cluster, int seconds) {
  for (int second = 0; second < seconds && cluster.job("a").group; ++second) {
    cluster.Heartbeat();
    cluster.Pass(std::chrono::seconds(1));
  }
}

TEST(Cancel, OfAJobThatTrainsCommitsFirst) {
  TestCluster cluster;
  TrainPastACommit(cluster);
  const CallId call = CancelIn(CancelMode::kIfTraining, cluster);
  EXPECT_EQ(StateOfA(cluster), v1::JOB_STATE_RUNNING);
  EXPECT_TRUE(IsBeingCancelled(cluster.job("a").record));
  EXPECT_EQ(AnswerTo(cluster, call), nullptr);
  cluster.Commit("a", StopAttempt(cluster.job("a").record), 14);
  EXPECT_EQ(StateOfA(cluster), v1::JOB_STATE_CANCELLED);
  EXPECT_TRUE(IsAnsweredWithJob(cluster, call));
  EXPECT_EQ(NewestMessage(cluster), "cancelled after its commit of step 14");
}

TEST(Cancel, WithoutAFieldEndsAtOnceAndNamesTheStepsThatAreLost) {
  TestCluster cluster;
  TrainPastACommit(cluster);
  const CallId call = CancelIn(CancelMode::kNow, cluster);
  EXPECT_TRUE(IsAnsweredWithJob(cluster, call));
  EXPECT_EQ(StateOfA(cluster), v1::JOB_STATE_CANCELLED);
  EXPECT_EQ(NewestMessage(cluster), "cancelled; steps 11 to 13 are in no commit");
}

TEST(Cancel, WhereNothingTrainsEndsAtOnce) {
  TestCluster cluster;
  cluster.Connect("worker-0");
  cluster.Submit(TestSpec("a", 1, 10));
  cluster.Submit(TestSpec("b", 1, 10));
  ASSERT_EQ(StateOfA(cluster), v1::JOB_STATE_STARTING);
  for (const std::string job : {"b", "a"}) {
    EXPECT_TRUE(IsAnsweredWithJob(cluster, CancelIn(CancelMode::kIfTraining, cluster, job)));
    EXPECT_EQ(cluster.job(job).record.state(), v1::JOB_STATE_CANCELLED);
  }
  v1::JobSpec without_folder = TestSpec("c", 1, 10);
  without_folder.mutable_checkpoint()->clear_folder();
  cluster.Connect("worker-1");
  cluster.Submit(without_folder);
  cluster.StartRanks("c");
  cluster.Report("c", 1);
  EXPECT_TRUE(IsAnsweredWithJob(cluster, CancelIn(CancelMode::kIfTraining, cluster, "c")));
  EXPECT_EQ(NewestMessage(cluster), "cancelled; step 1 is in no commit");
}

TEST(Cancel, WhoseCommitFailsEndsWithoutItAndNamesTheStepsThatAreLost) {
  for (const bool restarts : {false, true}) {
    TestCluster cluster;
    TrainPastACommit(cluster);
    const CallId call = CancelIn(CancelMode::kIfTraining, cluster);
    if (restarts) {
      cluster.Restart();
      for (const std::string worker : {"worker-0", "worker-1"}) cluster.Reconnect(worker);
    }
    FailToWrite(cluster, StopAttempt(cluster.job("a").record));
    EXPECT_EQ(StateOfA(cluster), v1::JOB_STATE_CANCELLED) << restarts;
    EXPECT_EQ(IsAnsweredWithJob(cluster, call), !restarts) << "a new leader knows no caller";
    EXPECT_EQ(NewestMessage(cluster),
              "cancelled without a commit: rank 1: Input/output error; steps 11 to 13 are in no "
              "commit");
    EXPECT_FALSE(StopsFor(StopPurpose::kCancelAnyway, cluster.job("a").record));
  }
}

TEST(Cancel, WhoseRanksFailBeforeTheCommitEndsWithoutItAndTheHostIsBlamed) {
  TestCluster cluster;
  TrainPastACommit(cluster);
  const CallId call = CancelIn(CancelMode::kIfTraining, cluster);
  cluster.Crash("a", 1, 3);
  EXPECT_TRUE(IsAnsweredWithJob(cluster, call));
  EXPECT_EQ(StateOfA(cluster), v1::JOB_STATE_CANCELLED);
  EXPECT_THAT(NewestMessage(cluster), HasSubstr("its ranks failed before it: RANK_CRASHED"));
  EXPECT_THAT(NewestMessage(cluster), HasSubstr("steps 11 to 13 are in no commit"));
  EXPECT_TRUE(cluster.state().fleet.blame.contains("worker-1"));
}

TEST(Cancel, WhoseRanksNeverAnswerEndsWithinTheLimits) {
  TestCluster cluster;
  TrainPastACommit(cluster);
  CancelIn(CancelMode::kIfTraining, cluster);
  cluster.Vote("a", StopAttempt(cluster.job("a").record), 14, 0);
  PassWhileGrouped(cluster, 700);
  EXPECT_EQ(StateOfA(cluster), v1::JOB_STATE_CANCELLED);
  EXPECT_THAT(NewestMessage(cluster), HasSubstr("no message came from rank 1 on worker-1"));
}

TEST(Cancel, WithoutACommitEndsTheWaitOfOthersAndThoseThatNeedOneGetAnError) {
  TestCluster cluster;
  TrainPastACommit(cluster);
  const CallId strict = CancelIn(CancelMode::kStrict, cluster);
  const CallId patient = CancelIn(CancelMode::kIfTraining, cluster);
  const CallId now = CancelIn(CancelMode::kNow, cluster);
  EXPECT_EQ(StateOfA(cluster), v1::JOB_STATE_CANCELLED);
  EXPECT_TRUE(IsAnsweredWithJob(cluster, now));
  EXPECT_TRUE(IsAnsweredWithJob(cluster, patient));
  ASSERT_NE(AnswerTo(cluster, strict), nullptr);
  EXPECT_EQ(AnswerTo(cluster, strict)->status.code(), StatusCode::kAborted);
}

TEST(Cancel, OfAJobWhoseLastCheckpointHasFailedTriesItOnceMoreAtOnce) {
  for (const bool is_written : {true, false}) {
    TestCluster cluster;
    TrainPastACommit(cluster);
    const CallId strict = CancelIn(CancelMode::kStrict, cluster);
    FailToWrite(cluster, StopAttempt(cluster.job("a").record));
    EXPECT_EQ(AnswerTo(cluster, strict)->status.code(), StatusCode::kAborted);
    const CallId call = CancelIn(CancelMode::kIfTraining, cluster);
    cluster.Pass(std::chrono::milliseconds(1));
    const int64_t again = StopAttempt(cluster.job("a").record);
    ASSERT_TRUE(cluster.job("a").attempts.contains(again)) << "it was asked for at once";
    if (is_written) {
      cluster.Commit("a", again, 13);
    } else {
      FailToWrite(cluster, again);
    }
    EXPECT_EQ(StateOfA(cluster), v1::JOB_STATE_CANCELLED);
    EXPECT_TRUE(IsAnsweredWithJob(cluster, call));
    EXPECT_EQ(NewestMessage(cluster).find("in no commit") == std::string::npos, is_written);
  }
}

TEST(Cancel, OfAJobThatHasAppliedItsLastStepWaitsForItsLastCheckpoint) {
  TestCluster cluster;
  TrainPastACommit(cluster);
  for (int64_t step = 14; step <= 30; ++step) {
    for (const int rank : {0, 1}) cluster.Report("a", step, rank);
  }
  ASSERT_FALSE(IsBeingCancelled(cluster.job("a").record));
  const CallId call = CancelIn(CancelMode::kIfTraining, cluster);
  EXPECT_TRUE(IsBeingCancelled(cluster.job("a").record));
  cluster.Commit("a", AttemptOf(cluster, 30), 30);
  EXPECT_EQ(StateOfA(cluster), v1::JOB_STATE_SUCCEEDED);
  EXPECT_TRUE(IsAnsweredWithJob(cluster, call));
}

}  // namespace
}  // namespace troupe
