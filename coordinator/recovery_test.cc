// What fails: ranks, workers, checkpoint attempts, the coordinator itself.
#include "coordinator/recovery.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/group.h"
#include "coordinator/test_cluster.h"

namespace troupe {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

using Kind = v1::CoordinatorMessage;

// A job `a` of `ranks` ranks on worker-0 …, running, with due checkpoints every 10 of 100 steps.
void RunJob(TestCluster& cluster, int ranks, int workers) {
  for (int worker = 0; worker < workers; ++worker)
    cluster.Connect(fmt::format("worker-{}", worker));
  v1::JobSpec spec = TestSpec("a", ranks, 100);
  spec.mutable_checkpoint()->set_interval(10);
  cluster.Submit(spec);
  cluster.StartRanks("a");
}

int64_t AttemptOf(TestCluster& cluster, int64_t step) {
  for (const auto& [number, attempt] : cluster.job("a").attempts) {
    if (attempt.record.step() == step) return number;
  }
  ADD_FAILURE() << "no attempt of step " << step;
  return 0;
}

// A failure that rank 0 of job `a` says in its current epoch.
v1::WorkerMessage FailureOf(const TestCluster& cluster, StatusCode code) {
  v1::WorkerMessage message;
  message.mutable_rank_failed()->set_job("a");
  message.mutable_rank_failed()->set_group_epoch(cluster.job("a").record.group_epoch());
  message.mutable_rank_failed()->set_code(static_cast<int>(code));
  return message;
}

void ReportUpTo(TestCluster& cluster, int64_t from, int64_t to) {
  for (int64_t step = from; step <= to; ++step) cluster.Report("a", step);
}

TEST(Recovery, ACrashedRankCostsOneRestartAndTheNewestCommitIsRestored) {
  TestCluster cluster;
  RunJob(cluster, 2, 2);
  ReportUpTo(cluster, 1, 10);
  cluster.Commit("a", AttemptOf(cluster, 10), 10);
  ReportUpTo(cluster, 11, 14);
  cluster.Crash("a", 1);
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_RECOVERING);
  EXPECT_NE(cluster.Last("worker-0", Kind::kStopRanks), nullptr);
  EXPECT_EQ(cluster.state().fleet.leases.size(), 1u)
      << "rank 0 lives until it says that it stopped";
  cluster.StopRanks("a", 1, {"worker-0"});
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_STARTING);
  EXPECT_EQ(cluster.job("a").record.group_epoch(), 2u);
  EXPECT_EQ(cluster.job("a").record.restarts(), 1);
  const v1::StartRanks& start = cluster.Last("worker-0", Kind::kStartRanks)->start_ranks();
  EXPECT_EQ(start.restore_path(), "/ck/a/step-00000010-epoch-1-attempt-1-at-0");
  EXPECT_EQ(start.restore_digest(), "sha256:1");
  cluster.StartRanks("a", 10);
  EXPECT_EQ(cluster.job("a").record.step(), 10);
  // Steps 11 to 14 come again and replace the stored ones.
  ReportUpTo(cluster, 11, 12);
  cluster.Pass(std::chrono::seconds(1));
  const auto rows = ReadHistory(cluster.store(), "a", 0, 100);
  ASSERT_EQ(rows->size(), 14u);
  EXPECT_EQ((*rows)[11].group_epoch(), 2u);
  EXPECT_EQ((*rows)[13].group_epoch(), 1u);
  EXPECT_THAT(cluster.Events("a"),
              ElementsAre("QUEUED", "STARTED", "CHECKPOINT_COMMITTED", "RANK_LOST", "RECOVERING",
                          "WAITING_FOR_CAPACITY", "RECOVERED"));
}

TEST(Recovery, AWorkerThatIsGoneForTheGraceIsLostAndASpareTakesItsPlace) {
  TestCluster cluster;
  RunJob(cluster, 2, 3);
  cluster.Report("a", 1);
  cluster.Disconnect("worker-1");
  cluster.Pass(std::chrono::seconds(1));
  cluster.Heartbeat();
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_RUNNING);
  cluster.Pass(std::chrono::milliseconds(2100));
  EXPECT_THAT(cluster.Events("a"), Contains("WORKER_LOST"));
  EXPECT_THAT(cluster.Events("a"), Contains("RANK_LOST"));
  cluster.StopRanks("a", 1, {"worker-0"});
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_STARTING);
  EXPECT_EQ(cluster.job("a").last_group.ranks(1).worker(), "worker-2");
}

TEST(Recovery, ANewLifeOfAWorkerProvesTheDeathOfItsRanksAtOnce) {
  TestCluster cluster;
  RunJob(cluster, 2, 2);
  cluster.Disconnect("worker-1");
  cluster.Connect("worker-1");
  EXPECT_EQ(cluster.job("a").record.restarts(), 1);
  cluster.StopRanks("a", 1, {"worker-0"});
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_STARTING);
}

TEST(Recovery, AWorkerThatComesBackWithinTheGraceKeepsItsRanks) {
  TestCluster cluster;
  RunJob(cluster, 2, 2);
  cluster.Disconnect("worker-1");
  cluster.worker("worker-1").inbox.clear();
  cluster.Reconnect("worker-1");
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_RUNNING);
  EXPECT_EQ(cluster.job("a").record.restarts(), 0);
  EXPECT_NE(cluster.Last("worker-1", Kind::kTicket), nullptr)
      << "what may have been lost is said again";
}

TEST(Recovery, ASecondaryFailureWaitsForThePrimaryCause) {
  TestCluster cluster;
  RunJob(cluster, 2, 2);
  v1::WorkerMessage message;
  message.mutable_rank_failed()->set_job("a");
  message.mutable_rank_failed()->set_group_epoch(1);
  message.mutable_rank_failed()->set_rank(0);
  message.mutable_rank_failed()->set_secondary(true);
  message.mutable_rank_failed()->set_message("peer is gone");
  cluster.Say("worker-0", message);
  EXPECT_EQ(ShownState(cluster.job("a")), v1::JOB_STATE_RECOVERING);
  EXPECT_EQ(cluster.job("a").record.restarts(), 0);
  cluster.Crash("a", 1);
  EXPECT_EQ(cluster.job("a").record.restarts(), 1);
  EXPECT_THAT(cluster.Events("a"),
              ElementsAre("QUEUED", "STARTED", "RANK_LOST", "RECOVERING", "WAITING_FOR_CAPACITY"));
}

TEST(Recovery, ASecondaryFailureAloneIsTheCauseOnceTheWaitIsOver) {
  TestCluster cluster;
  RunJob(cluster, 2, 2);
  v1::WorkerMessage message;
  message.mutable_rank_failed()->set_job("a");
  message.mutable_rank_failed()->set_group_epoch(1);
  message.mutable_rank_failed()->set_secondary(true);
  cluster.Say("worker-0", message);
  cluster.Pass(MakeTimeLimits(3).settle);
  EXPECT_EQ(cluster.job("a").record.restarts(), 1);
}

TEST(Recovery, ASecondaryFailureWhileAWorkersStreamIsClosedNamesThatWorker) {
  TestCluster cluster;
  RunJob(cluster, 2, 2);
  cluster.Disconnect("worker-1");
  v1::WorkerMessage message;
  message.mutable_rank_failed()->set_job("a");
  message.mutable_rank_failed()->set_group_epoch(1);
  message.mutable_rank_failed()->set_secondary(true);
  cluster.Say("worker-0", message);
  EXPECT_EQ(cluster.job("a").record.restarts(), 1);
  EXPECT_THAT(cluster.Events("a"), Contains("WORKER_LOST"));
}

TEST(Recovery, AJobThatAlwaysCrashesEndsAfterItsBudgetWithOneCause) {
  TestCluster cluster;
  cluster.Connect("worker-0");
  v1::JobSpec spec = TestSpec("a", 1, 100);
  spec.mutable_fault_tolerance()->set_max_restarts(3);
  cluster.Submit(spec);
  for (int life = 0; life < 10 && !HasEnded(cluster.job("a")); ++life) {
    cluster.StartRanks("a");
    cluster.Crash("a", 0);
    for (int second = 0; second < 10; ++second) {
      cluster.Heartbeat();
      cluster.Pass(std::chrono::seconds(1));
    }
  }
  const v1::JobRecord& record = cluster.job("a").record;
  EXPECT_EQ(record.state(), v1::JOB_STATE_FAILED);
  EXPECT_EQ(record.restarts(), 3);
  EXPECT_EQ(record.group_epoch(), 4u);
  EXPECT_EQ(record.failure().cause(), "RESTART_BUDGET");
  EXPECT_EQ(record.failure().signal(), 9);
  EXPECT_THAT(record.failure().message(), HasSubstr("RANK_CRASHED"));
  EXPECT_EQ(cluster.updates.back().update.end(), v1::JOB_STATE_FAILED);
}

TEST(Recovery, AStepBeyondTheHighestRenewsTheBudget) {
  TestCluster cluster;
  cluster.Connect("worker-0");
  v1::JobSpec spec = TestSpec("a", 1, 100);
  spec.mutable_fault_tolerance()->set_max_restarts(1);
  cluster.Submit(spec);
  for (int64_t life = 1; life <= 4; ++life) {
    cluster.StartRanks("a");
    ReportUpTo(cluster, 1, life);
    cluster.Crash("a", 0);
  }
  EXPECT_FALSE(HasEnded(cluster.job("a")));
  EXPECT_EQ(cluster.job("a").record.restarts(), 4);
}

TEST(Recovery, AnErrorOfTheJobItselfMetAtTheStartIsNotTriedAgain) {
  TestCluster cluster;
  cluster.Connect("worker-0");
  cluster.Submit(TestSpec("a", 1, 100));
  v1::WorkerMessage message;
  message.mutable_rank_failed()->set_job("a");
  message.mutable_rank_failed()->set_group_epoch(1);
  message.mutable_rank_failed()->set_code(static_cast<int>(StatusCode::kNotFound));
  message.mutable_rank_failed()->set_message("data.train: no such file");
  cluster.Say("worker-0", message);
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_FAILED);
  EXPECT_THAT(cluster.job("a").record.failure().message(), HasSubstr("data.train"));
}

TEST(Recovery, ADamagedCommitIsQuarantinedAndTheOneBeforeItTaken) {
  TestCluster cluster;
  RunJob(cluster, 1, 1);
  ReportUpTo(cluster, 1, 10);
  cluster.Commit("a", AttemptOf(cluster, 10), 10);
  ReportUpTo(cluster, 11, 20);
  cluster.Commit("a", AttemptOf(cluster, 20), 20);
  cluster.Crash("a", 0);
  const std::string path =
      cluster.Last("worker-0", Kind::kStartRanks)->start_ranks().restore_path();
  EXPECT_THAT(path, HasSubstr("step-00000020"));
  v1::WorkerMessage message;
  message.mutable_rank_failed()->set_job("a");
  message.mutable_rank_failed()->set_group_epoch(2);
  message.mutable_rank_failed()->set_code(static_cast<int>(StatusCode::kDataLoss));
  message.mutable_rank_failed()->set_bad_checkpoint_path(path);
  cluster.Say("worker-0", message);
  EXPECT_THAT(cluster.Events("a"), Contains("CHECKPOINT_QUARANTINED"));
  v1::WorkerMessage stopped;
  stopped.mutable_rank_stopped()->set_job("a");
  stopped.mutable_rank_stopped()->set_group_epoch(2);
  cluster.Say("worker-0", stopped);
  for (int second = 0; second < 3; ++second) {
    cluster.Heartbeat();
    cluster.Pass(std::chrono::seconds(1));
  }
  EXPECT_THAT(cluster.Last("worker-0", Kind::kStartRanks)->start_ranks().restore_path(),
              HasSubstr("step-00000010"));
}

TEST(Recovery, AJobWhoseEveryCommitIsBadFailsInsteadOfBeginningAgain) {
  TestCluster cluster;
  RunJob(cluster, 1, 1);
  ReportUpTo(cluster, 1, 10);
  cluster.Commit("a", AttemptOf(cluster, 10), 10);
  cluster.Crash("a", 0);
  v1::WorkerMessage message = FailureOf(cluster, StatusCode::kDataLoss);
  message.mutable_rank_failed()->set_bad_checkpoint_path(
      cluster.Last("worker-0", Kind::kStartRanks)->start_ranks().restore_path());
  cluster.Say("worker-0", message);
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_FAILED);
  EXPECT_EQ(cluster.job("a").record.failure().cause(), "NO_RESTORABLE_CHECKPOINT");
  ResumeJobCall resume{9, {}};
  resume.request.set_name("a");
  EXPECT_EQ(cluster.Do(resume).replies.at(0).status.code(), StatusCode::kFailedPrecondition);
}

TEST(Recovery, AnInitialCheckpointThatIsBadEndsTheJobAtOnce) {
  TestCluster cluster;
  cluster.Connect("worker-0");
  v1::JobSpec spec = TestSpec("a", 1, 100);
  spec.mutable_checkpoint()->set_initial_load("/elsewhere/step-9");
  cluster.Submit(spec);
  v1::WorkerMessage message = FailureOf(cluster, StatusCode::kFailedPrecondition);
  message.mutable_rank_failed()->set_bad_checkpoint_path("/elsewhere/step-9");
  cluster.Say("worker-0", message);
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_FAILED);
  EXPECT_EQ(cluster.job("a").record.failure().cause(), "BAD_CHECKPOINT");
}

TEST(Recovery, WhatTheSameStepWouldMeetAgainEndsTheJobWithItsCause) {
  struct Case {
    const char* cause;
    StatusCode code;
    bool fatal;
  };
  for (const Case& is : {Case{"NONFINITE", StatusCode::kOutOfRange, true},
                         Case{"DATA", StatusCode::kInvalidArgument, true},
                         Case{"DATA", StatusCode::kUnavailable, false},
                         Case{"HANG", StatusCode::kDeadlineExceeded, false}}) {
    TestCluster cluster;
    RunJob(cluster, 2, 2);
    ReportUpTo(cluster, 1, 3);
    v1::WorkerMessage message = FailureOf(cluster, is.code);
    message.mutable_rank_failed()->set_cause(is.cause);
    cluster.Say("worker-0", message);
    EXPECT_EQ(cluster.job("a").record.state(),
              is.fatal ? v1::JOB_STATE_FAILED : v1::JOB_STATE_RECOVERING)
        << is.cause;
    EXPECT_EQ(cluster.job("a").record.restarts(), is.fatal ? 0 : 1) << is.cause;
    EXPECT_EQ(cluster.job("a").record.failure().cause(), is.fatal ? is.cause : "") << is.cause;
  }
}

TEST(Recovery, AnErrorOfOneHostMetAtARecoverysStartIsTriedAgain) {
  TestCluster cluster;
  RunJob(cluster, 1, 1);
  ReportUpTo(cluster, 1, 3);
  cluster.Crash("a", 0);
  ASSERT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_STARTING);
  cluster.Say("worker-0", FailureOf(cluster, StatusCode::kNotFound));
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_RECOVERING);
}

TEST(Recovery, AHungGroupIsBrokenAndAStartThatNeverEndsToo) {
  TestCluster cluster;
  RunJob(cluster, 1, 1);
  cluster.Report("a", 1);
  for (int second = 0; second < 59; ++second) {
    cluster.Heartbeat();
    cluster.Pass(std::chrono::seconds(1));
  }
  EXPECT_EQ(cluster.job("a").record.restarts(), 0);
  cluster.Heartbeat();
  cluster.Pass(std::chrono::seconds(2));
  EXPECT_EQ(cluster.job("a").record.restarts(), 1);
  cluster.Heartbeat();
  cluster.StopRanks("a", 1, {"worker-0"});
  ASSERT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_STARTING);
  for (int second = 0; second < 125; ++second) {
    cluster.Heartbeat();
    cluster.Pass(std::chrono::seconds(1));
  }
  EXPECT_EQ(cluster.job("a").record.restarts(), 2);
}

// Seconds until the running group is broken, with heartbeats all along.
int SecondsUntilBroken(TestCluster& cluster, int limit) {
  const int64_t restarts = cluster.job("a").record.restarts();
  for (int second = 1; second <= limit; ++second) {
    cluster.Heartbeat();
    cluster.Pass(std::chrono::seconds(1));
    if (cluster.job("a").record.restarts() != restarts) return second;
  }
  return limit + 1;
}

TEST(Recovery, AFirstStepMayTakeAsLongAsTheRanksOwnWatchdogAllows) {
  TestCluster cluster;
  RunJob(cluster, 2, 2);
  // 100 s a step at 2 GFLOP/s a rank.
  cluster.state().jobs.at("a").plan.set_model_flops_per_step(4e11);
  EXPECT_EQ(SecondsUntilBroken(cluster, 1000), 60 + 5 * 100);
}

TEST(Recovery, TheLimitOfAStartGrowsWithWhatIsRestoredAndWithWhatTheJobAllows) {
  TestCluster cluster;
  RunJob(cluster, 1, 1);
  ReportUpTo(cluster, 1, 10);
  cluster.Commit("a", AttemptOf(cluster, 10), 10);
  cluster.state().jobs.at("a").checkpoints.begin()->second.set_bytes(int64_t{50} * 1000 * 1000 *
                                                                     300);
  cluster.Crash("a", 0);
  ASSERT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_STARTING);
  const v1::StartRanks& start = cluster.Last("worker-0", Kind::kStartRanks)->start_ranks();
  EXPECT_EQ(start.start_seconds(), 60 + 300);
  EXPECT_EQ(SecondsUntilBroken(cluster, 1000), 360);

  TestCluster patient;
  patient.Connect("worker-0");
  v1::JobSpec spec = TestSpec("a", 1, 100);
  spec.mutable_fault_tolerance()->set_hang_seconds(900);
  patient.Submit(spec);
  EXPECT_EQ(patient.Last("worker-0", Kind::kStartRanks)->start_ranks().start_seconds(), 900);
}

TEST(Recovery, ALayoutChangeIsMadeOnlyIfAllowedAndAfterSomePatience) {
  for (const bool allowed : {false, true}) {
    TestCluster cluster;
    cluster.Connect("worker-0");
    cluster.Connect("worker-1");
    v1::JobSpec spec = TestSpec("a", 2, 100);
    spec.mutable_fault_tolerance()->set_allow_layout_change(allowed);
    cluster.Submit(spec);
    cluster.StartRanks("a");
    cluster.Disconnect("worker-1");
    for (int second = 0; second < 4; ++second) {
      cluster.Heartbeat();
      cluster.Pass(std::chrono::seconds(1));
    }
    cluster.StopRanks("a", 1, {"worker-0"});
    EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_RECOVERING);
    EXPECT_FALSE(cluster.job("a").waiting_for.empty());
    for (int second = 0; second < 10; ++second) {
      cluster.Heartbeat();
      cluster.Pass(std::chrono::seconds(1));
    }
    EXPECT_EQ(cluster.job("a").record.state(),
              allowed ? v1::JOB_STATE_STARTING : v1::JOB_STATE_RECOVERING);
    EXPECT_EQ(cluster.job("a").plan.ranks_size(), allowed ? 1 : 2);
  }
}

TEST(Attempts, ACommitNeedsEveryRanksVoteOnceAndTheManifest) {
  TestCluster cluster;
  RunJob(cluster, 2, 2);
  ReportUpTo(cluster, 1, 10);
  const int64_t attempt = AttemptOf(cluster, 10);
  cluster.Vote("a", attempt, 10, 0);
  cluster.Vote("a", attempt, 10, 0);
  EXPECT_EQ(ShownState(cluster.job("a")), v1::JOB_STATE_CHECKPOINTING);
  EXPECT_EQ(cluster.Last("worker-0", Kind::kWriteManifest), nullptr);
  cluster.WriteManifest("a", attempt);
  EXPECT_EQ(NewestCommit(cluster.job("a")), nullptr)
      << "a manifest without all votes commits nothing";
  cluster.Vote("a", attempt, 10, 1);
  const v1::CoordinatorMessage* const write = cluster.Last("worker-0", Kind::kWriteManifest);
  ASSERT_NE(write, nullptr);
  EXPECT_EQ(write->write_manifest().manifest().shards_size(), 2);
  EXPECT_EQ(write->write_manifest().manifest().state().step(), 10);
  const Effects effects = cluster.WriteManifest("a", attempt);
  ASSERT_NE(NewestCommit(cluster.job("a")), nullptr);
  EXPECT_THAT(effects.failpoints_before, ElementsAre("catalog.commit.before"));
  // Late votes of a settled attempt learn how it ended.
  cluster.worker("worker-1").inbox.clear();
  cluster.Vote("a", attempt, 10, 1);
  EXPECT_TRUE(cluster.Last("worker-1", Kind::kCheckpointSettled)->checkpoint_settled().committed());
}

TEST(Attempts, AVoteOfAnotherLifeOrEpochCountsForNothing) {
  TestCluster cluster;
  RunJob(cluster, 1, 1);
  const int64_t attempt = AttemptOf(cluster, 10);
  cluster.worker("worker-0").incarnation += 1;
  cluster.Vote("a", attempt, 10, 0);
  EXPECT_THAT(cluster.job("a").attempts.at(attempt).votes, IsEmpty());
  cluster.worker("worker-0").incarnation -= 1;
  cluster.Vote("a", attempt, 10, 0);
  EXPECT_EQ(cluster.job("a").attempts.at(attempt).votes.size(), 1u);
}

TEST(Attempts, VotesForDifferentStepsAbortTheAttemptAndTrainingGoesOn) {
  TestCluster cluster;
  RunJob(cluster, 2, 2);
  CreateCheckpointCall call{77, {}};
  call.request.set_job("a");
  cluster.Do(call);
  const int64_t attempt =
      cluster.Last("worker-0", Kind::kCheckpointRequest)->checkpoint_request().intent().attempt();
  cluster.Vote("a", attempt, 3, 0);
  cluster.Vote("a", attempt, 4, 1);
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_RUNNING);
  EXPECT_FALSE(
      cluster.Last("worker-1", Kind::kCheckpointSettled)->checkpoint_settled().committed());
  ASSERT_EQ(cluster.replies.back().call, 77u);
  EXPECT_EQ(cluster.replies.back().status.code(), StatusCode::kAborted);
  // The files go, and with them the record once no rank may write any more.
  const v1::CoordinatorMessage* const erase = cluster.Last("worker-0", Kind::kDeleteCheckpoint);
  ASSERT_NE(erase, nullptr);
  v1::WorkerMessage deleted;
  deleted.mutable_checkpoint_deleted()->set_job("a");
  deleted.mutable_checkpoint_deleted()->set_attempt(attempt);
  cluster.Say("worker-0", deleted);
  EXPECT_TRUE(cluster.job("a").checkpoints.contains(attempt));
  cluster.Report("a", 5, 0);
  cluster.Report("a", 5, 1);
  cluster.Say("worker-0", deleted);
  EXPECT_FALSE(cluster.job("a").checkpoints.contains(attempt));
}

TEST(Attempts, AFullDiskAbortsTheAttemptAlone) {
  TestCluster cluster;
  RunJob(cluster, 1, 1);
  ReportUpTo(cluster, 1, 10);
  v1::WorkerMessage failed;
  failed.mutable_shard_failed()->set_job("a");
  failed.mutable_shard_failed()->set_group_epoch(1);
  failed.mutable_shard_failed()->set_attempt(AttemptOf(cluster, 10));
  failed.mutable_shard_failed()->set_reason("No space left on device");
  cluster.Say("worker-0", failed);
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_RUNNING);
  EXPECT_THAT(cluster.Events("a"), Contains("CHECKPOINT_ABORTED"));
}

TEST(Attempts, ADueCheckpointThatTheRanksPassedByIsSkippedAndCounted) {
  TestCluster cluster;
  RunJob(cluster, 1, 1);
  ReportUpTo(cluster, 1, 11);
  EXPECT_EQ(cluster.job("a").record.skipped_checkpoints(), 0);
  cluster.Report("a", 12);
  EXPECT_EQ(cluster.job("a").record.skipped_checkpoints(), 1);
  EXPECT_THAT(cluster.Events("a"), Contains("CHECKPOINT_SKIPPED"));
}

TEST(Attempts, RetentionKeepsTheNewestAndDeletesThroughATombstone) {
  TestCluster cluster;
  cluster.Connect("worker-0");
  v1::JobSpec spec = TestSpec("a", 1, 100);
  spec.mutable_checkpoint()->set_interval(10);
  spec.mutable_checkpoint()->set_keep_latest_k(2);
  cluster.Submit(spec);
  cluster.StartRanks("a");
  for (int64_t step = 10; step <= 40; step += 10) {
    ReportUpTo(cluster, step - 9, step);
    cluster.Commit("a", AttemptOf(cluster, step), step);
  }
  std::vector<int64_t> steps;
  for (const v1::CheckpointRecord& record : ListedCheckpoints(cluster.job("a")))
    steps.push_back(record.step());
  EXPECT_THAT(steps, ElementsAre(30, 40));
  const v1::CoordinatorMessage* const erase = cluster.Last("worker-0", Kind::kDeleteCheckpoint);
  ASSERT_NE(erase, nullptr);
  // The tombstones outlive the coordinator and are said again to the worker that comes back.
  cluster.Restart();
  cluster.Reconnect("worker-0");
  EXPECT_EQ(cluster.Count("worker-0", Kind::kDeleteCheckpoint), 2);
}

TEST(Adoption, AGroupWhoseRanksAreAllHeldGoesOnWithoutARestart) {
  TestCluster cluster;
  RunJob(cluster, 2, 2);
  ReportUpTo(cluster, 1, 5);
  cluster.Pass(std::chrono::seconds(1));
  const uint64_t leader = cluster.state().leader_epoch;
  cluster.Restart();
  EXPECT_EQ(cluster.state().leader_epoch, leader + 1);
  cluster.Reconnect("worker-0");
  EXPECT_EQ(cluster.Last("worker-0", Kind::kTicket), nullptr);
  cluster.Reconnect("worker-1");
  ASSERT_NE(cluster.Last("worker-0", Kind::kTicket), nullptr);
  EXPECT_EQ(cluster.Last("worker-0", Kind::kTicket)->leader_epoch(), leader + 1);
  EXPECT_EQ(cluster.job("a").record.restarts(), 0);
  EXPECT_EQ(cluster.job("a").record.step(), 5);
  cluster.Report("a", 6);
  EXPECT_EQ(cluster.job("a").record.step(), 6);
  // Intents keep their attempts: the same step has one.
  EXPECT_EQ(cluster.job("a").attempts.size(), 10u);
}

TEST(Adoption, AGroupOfWhichAWorkerDoesNotComeBackIsBroken) {
  TestCluster cluster;
  RunJob(cluster, 2, 2);
  cluster.Restart();
  cluster.Reconnect("worker-0");
  cluster.Pass(std::chrono::seconds(2));
  cluster.Heartbeat();
  EXPECT_EQ(cluster.job("a").record.restarts(), 0);
  cluster.Pass(std::chrono::milliseconds(1100));
  EXPECT_EQ(cluster.job("a").record.restarts(), 1);
  EXPECT_NE(cluster.Last("worker-0", Kind::kStopRanks), nullptr);
}

TEST(Adoption, AWorkerThatDiedMeanwhileBreaksTheGroupWithItsHello) {
  TestCluster cluster;
  RunJob(cluster, 2, 2);
  cluster.Restart();
  cluster.Reconnect("worker-0");
  cluster.Connect("worker-1");
  EXPECT_EQ(cluster.job("a").record.restarts(), 1);
  cluster.StopRanks("a", 1, {"worker-0"});
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_STARTING);
}

TEST(Adoption, ASlowJobThatIsHealthyKeepsItsPaceOverTheRestart) {
  TestCluster cluster;
  RunJob(cluster, 1, 1);
  v1::WorkerMessage message;
  v1::StepReport& report = *message.mutable_step_report();
  report.set_job("a");
  report.set_group_epoch(1);
  for (int64_t step = 1; step <= 3; ++step) {
    report.set_step(step);
    report.set_step_seconds(100);
    cluster.Say("worker-0", message);
  }
  cluster.Pass(std::chrono::seconds(1));
  cluster.Restart();
  cluster.Reconnect("worker-0");
  EXPECT_EQ(MedianStepSeconds(cluster.job("a")), 100);
  EXPECT_EQ(SecondsUntilBroken(cluster, 1000), 500);
}

TEST(Adoption, LeasesOfAWorkerThatNeverComesBackEndWithItsTickets) {
  TestCluster cluster;
  RunJob(cluster, 2, 2);
  cluster.Restart();
  cluster.Reconnect("worker-0");
  EXPECT_EQ(cluster.state().fleet.leases.size(), 2u);
  const Duration forget = MakeTimeLimits(3).forget_worker;
  for (Duration passed{}; passed < forget; passed += std::chrono::seconds(1)) {
    cluster.Heartbeat();
    cluster.Pass(std::chrono::seconds(1));
  }
  EXPECT_FALSE(cluster.state().fleet.leases.contains({"worker-1", 0}));
  EXPECT_FALSE(cluster.state().fleet.workers.contains("worker-1"));
  EXPECT_EQ(ReadCatalog(cluster.store())->leases.count({"worker-1", 0}), 0u);
}

TEST(Adoption, ALayoutChangeThatIsAllowedIsMadeAlsoIfTheCoordinatorDiesAtTheStart) {
  TestCluster cluster;
  for (const char* worker : {"worker-0", "worker-1"}) cluster.Connect(worker);
  v1::JobSpec spec = TestSpec("a", 2, 100);
  spec.mutable_fault_tolerance()->set_allow_layout_change(true);
  cluster.Submit(spec);
  cluster.StartRanks("a");
  cluster.Crash("a", 1);
  cluster.StopRanks("a", 1, {"worker-0"});
  ASSERT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_STARTING);
  cluster.Restart();
  // Only one of the two comes back.
  cluster.Reconnect("worker-0");
  for (int second = 0; second < 8; ++second) {
    cluster.Heartbeat();
    cluster.Pass(std::chrono::seconds(1));
  }
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_STARTING);
  EXPECT_EQ(cluster.job("a").plan.ranks_size(), 1);
}

TEST(Adoption, AStartThatWasInterruptedBeginsAnewAndStopsTheOldRanks) {
  TestCluster cluster;
  cluster.Connect("worker-0");
  CreateJobCall call{1, {}};
  *call.request.mutable_job() = TestSpec("a", 1, 10);
  // Durable, but StartRanks was never sent.
  cluster.DoAndDie(call);
  cluster.Reconnect("worker-0");
  EXPECT_EQ(cluster.Last("worker-0", Kind::kStartRanks)->start_ranks().group_epoch(), 2u);
  EXPECT_EQ(cluster.job("a").record.restarts(), 0);
  // Sent, and running when the coordinator died before it knew.
  cluster.worker("worker-0").held.emplace_back().set_job("a");
  cluster.worker("worker-0").held[0].set_group_epoch(2);
  cluster.worker("worker-0").held[0].add_ranks(0);
  cluster.Restart();
  cluster.Reconnect("worker-0");
  EXPECT_EQ(cluster.Last("worker-0", Kind::kStopRanks)->stop_ranks().group_epoch(), 2u);
  EXPECT_EQ(cluster.Last("worker-0", Kind::kStartRanks), nullptr)
      << "its device is leased until the rank is gone";
  cluster.StopRanks("a", 2, {"worker-0"});
  EXPECT_EQ(cluster.Last("worker-0", Kind::kStartRanks)->start_ranks().group_epoch(), 3u);
}

}  // namespace
}  // namespace troupe
