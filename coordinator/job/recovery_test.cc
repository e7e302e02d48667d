// Failures of ranks, of workers, and of the checkpoints that they start from.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "coordinator/job/group.h"
#include "coordinator/job/recovery.h"
#include "coordinator/test_cluster.h"

namespace troupe {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using Kind = v1::CoordinatorMessage;

// A failure that rank 0 of job `a` reports in its current epoch.
v1::WorkerMessage FailureOf(const TestCluster& cluster, StatusCode code) {
  v1::WorkerMessage message;
  message.mutable_rank_failed()->set_job("a");
  message.mutable_rank_failed()->set_group_epoch(cluster.job("a").record.group_epoch());
  message.mutable_rank_failed()->set_code(static_cast<int>(code));
  return message;
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
      << "rank 0 lives until it reports that it stopped";
  cluster.StopRanks("a", 1, {"worker-0"});
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_STARTING);
  EXPECT_EQ(cluster.job("a").record.group_epoch(), 2u);
  EXPECT_EQ(cluster.job("a").record.restarts(), 1);
  const v1::StartRanks& start = cluster.Last("worker-0", Kind::kStartRanks)->start_ranks();
  EXPECT_EQ(start.restore_path(), "/ck/a/step-00000010-epoch-1-attempt-1-at-0");
  EXPECT_EQ(start.restore_digest(), "sha256:1");
  cluster.StartRanks("a", 10);
  EXPECT_EQ(cluster.job("a").record.step(), 10);
  // Steps 11 to 14 are reported again and replace the stored ones.
  ReportUpTo(cluster, 11, 12);
  cluster.Pass(std::chrono::seconds(1));
  const auto rows = ReadHistory(cluster.store(), "a", 0, 100);
  ASSERT_EQ(rows->size(), 14u);
  EXPECT_EQ((*rows)[11].group_epoch(), 2u);
  EXPECT_EQ((*rows)[13].group_epoch(), 1u);
  EXPECT_THAT(cluster.Events("a"), ElementsAre("QUEUED", "STARTED", "CHECKPOINT_COMMITTED",
                                               "RANK_LOST", "RECOVERING", "RECOVERED"));
}

TEST(Recovery, AFaultOfADeviceIsTheRecordedCauseAndTheDeviceIsNotLeasedAgain) {
  TestCluster cluster;
  RunJob(cluster, 2, 3);
  cluster.Report("a", 1);
  const std::string cause = "Xid 79 (GPU has fallen off the bus) on GPU-a";
  v1::WorkerMessage condemned;
  condemned.mutable_device_condemned()->set_device(0);
  condemned.mutable_device_condemned()->set_reason(cause);
  cluster.SendFrom("worker-1", condemned);
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_RUNNING)
      << "its rank is reported separately";
  v1::WorkerMessage failed = FailureOf(cluster, StatusCode::kUnavailable);
  failed.mutable_rank_failed()->set_rank(1);
  failed.mutable_rank_failed()->set_cause("DEVICE_FAULT");
  failed.mutable_rank_failed()->set_message(cause);
  cluster.SendFrom("worker-1", failed);
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_RECOVERING);
  // The daemon's report about the killed process is a consequence of it.
  v1::WorkerMessage stopped;
  stopped.mutable_rank_stopped()->set_job("a");
  stopped.mutable_rank_stopped()->set_group_epoch(1);
  stopped.mutable_rank_stopped()->set_rank(1);
  stopped.mutable_rank_stopped()->set_crashed(true);
  stopped.mutable_rank_stopped()->set_cause("DEVICE_FAULT");
  stopped.mutable_rank_stopped()->set_message(cause);
  cluster.SendFrom("worker-1", stopped);
  cluster.StopRanks("a", 1, {"worker-0"});
  EXPECT_EQ(cluster.job("a").record.restarts(), 1);
  ASSERT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_STARTING);
  for (const v1::RankPlacement& placement : cluster.job("a").last_group.ranks()) {
    EXPECT_NE(placement.worker(), "worker-1");
  }
  std::vector<std::string> lost;
  const auto events = ReadEvents(cluster.store(), "a");
  ASSERT_TRUE(events.ok()) << events.status();
  for (const v1::JobEvent& event : *events) {
    if (event.event() == "RANK_LOST") lost.push_back(event.message());
  }
  EXPECT_THAT(lost, ElementsAre("DEVICE_FAULT: rank 1 on worker-1: " + cause));
}

TEST(Recovery, APathOutsideItsRootEndsTheJobAtOnceAndBlamesNoHost) {
  TestCluster cluster;
  RunJob(cluster, 1, 3);
  cluster.Report("a", 1);
  v1::WorkerMessage failed = FailureOf(cluster, StatusCode::kPermissionDenied);
  failed.mutable_rank_failed()->set_cause("PATH_OUTSIDE_ROOT");
  failed.mutable_rank_failed()->set_message("open /r/x: the path leaves /r");
  const std::string worker = cluster.job("a").last_group.ranks(0).worker();
  const Effects effects = cluster.SendFrom(worker, failed);
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_FAILED);
  EXPECT_EQ(cluster.job("a").record.restarts(), 0);
  EXPECT_EQ(cluster.job("a").record.failure().cause(), "PATH_OUTSIDE_ROOT");
  ASSERT_THAT(effects.refused_paths, SizeIs(1));
  EXPECT_EQ(effects.refused_paths[0].worker, worker);
  EXPECT_EQ(effects.refused_paths[0].job, "a");
  EXPECT_THAT(effects.refused_paths[0].reason, HasSubstr("the path leaves /r"));
  EXPECT_THAT(cluster.SendFrom(worker, failed).refused_paths, IsEmpty());
  EXPECT_THAT(cluster.job("a").record.failure().message(), HasSubstr("the path leaves /r"));
  EXPECT_TRUE(cluster.state().fleet.blame.empty());
}

TEST(Recovery, AWorkerThatBlamesAnotherOneForAPathIsRecordedByItsOwnName) {
  TestCluster cluster;
  RunJob(cluster, 2, 2);
  v1::WorkerMessage failed = FailureOf(cluster, StatusCode::kPermissionDenied);
  const v1::Plan& plan = cluster.job("a").plan;
  const std::string worker = plan.ranks(0).worker(), other = plan.ranks(1).worker();
  ASSERT_NE(worker, other);
  failed.mutable_rank_failed()->set_cause("PATH_OUTSIDE_ROOT");
  failed.mutable_rank_failed()->set_blamed_worker(other);
  const Effects effects = cluster.SendFrom(worker, failed);
  ASSERT_THAT(effects.refused_paths, SizeIs(1));
  EXPECT_EQ(effects.refused_paths[0].worker, worker);
}

TEST(Recovery, ACrashKeepsTheCauseThatItsWorkerKnows) {
  TestCluster cluster;
  RunJob(cluster, 1, 1);
  v1::WorkerMessage stopped;
  stopped.mutable_rank_stopped()->set_job("a");
  stopped.mutable_rank_stopped()->set_group_epoch(1);
  stopped.mutable_rank_stopped()->set_crashed(true);
  stopped.mutable_rank_stopped()->set_cause("DEVICE_FAULT");
  for (int i = 0; i < 20 && cluster.job("a").record.state() != v1::JOB_STATE_FAILED; ++i) {
    stopped.mutable_rank_stopped()->set_group_epoch(cluster.job("a").record.group_epoch());
    cluster.SendFrom("worker-0", stopped);
    cluster.Pass(std::chrono::seconds(2));
    cluster.Heartbeat();
  }
  ASSERT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_FAILED);
  EXPECT_THAT(cluster.job("a").record.failure().message(), HasSubstr("DEVICE_FAULT: rank 0"));
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

// Reports and the page sort events by their times.
TEST(Recovery, TheLossOfAWorkerComesBeforeTheRecoveryByItsTimeTooAndIsExplainedOnce) {
  TestCluster cluster;
  RunJob(cluster, 2, 2);
  cluster.Disconnect("worker-1");
  cluster.wall_ns = 1000;
  cluster.Connect("worker-1");
  const StatusOr<std::vector<v1::JobEvent>> events = ReadEvents(cluster.store(), "a");
  ASSERT_TRUE(events.ok());
  std::map<int64_t, std::string> texts;
  for (const v1::JobEvent& event : *events) {
    if (event.wall_time_ns() >= 1000)
      texts[event.wall_time_ns()] += event.event() + ' ' + event.message();
  }
  std::vector<std::string> by_time;
  for (const auto& [time, text] : texts) by_time.push_back(text);
  EXPECT_THAT(by_time,
              ElementsAre("WORKER_LOST worker-1: it ended and reconnected as a new incarnation",
                          "RANK_LOST rank 1 on worker-1", "RECOVERING WORKER_LOST on worker-1"));
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
      << "what may have been lost is resent";
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
  cluster.SendFrom("worker-0", message);
  EXPECT_EQ(ShownState(cluster.job("a")), v1::JOB_STATE_RECOVERING);
  EXPECT_EQ(cluster.job("a").record.restarts(), 0);
  cluster.Crash("a", 1);
  EXPECT_EQ(cluster.job("a").record.restarts(), 1);
  EXPECT_THAT(cluster.Events("a"), ElementsAre("QUEUED", "STARTED", "RANK_LOST", "RECOVERING"))
      << "nothing is missing: the devices of its former ranks suffice";
}

TEST(Recovery, ASecondaryFailureAloneIsTheCauseOnceTheWaitIsOver) {
  TestCluster cluster;
  RunJob(cluster, 2, 2);
  v1::WorkerMessage message;
  message.mutable_rank_failed()->set_job("a");
  message.mutable_rank_failed()->set_group_epoch(1);
  message.mutable_rank_failed()->set_secondary(true);
  cluster.SendFrom("worker-0", message);
  cluster.Pass(MakeTimeLimits(3).drain);
  EXPECT_EQ(cluster.job("a").record.restarts(), 1);
}

TEST(Recovery, ASecondaryFailureThatWouldEndTheJobWaitsForAHostThatIsFoundLostLater) {
  TestCluster cluster;
  RunJob(cluster, 2, 2);
  cluster.state().jobs.at("a").spec.mutable_fault_tolerance()->set_max_restarts(0);
  v1::WorkerMessage message;
  message.mutable_rank_failed()->set_job("a");
  message.mutable_rank_failed()->set_group_epoch(1);
  message.mutable_rank_failed()->set_secondary(true);
  message.mutable_rank_failed()->set_cause("COLLECTIVE");
  cluster.SendFrom("worker-0", message);
  cluster.Pass(MakeTimeLimits(3).drain);
  EXPECT_FALSE(HasEnded(cluster.job("a")));
  cluster.Disconnect("worker-1");
  EXPECT_FALSE(HasEnded(cluster.job("a")));
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
  cluster.SendFrom("worker-0", message);
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
  cluster.SendFrom("worker-0", message);
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
  cluster.SendFrom("worker-0", message);
  EXPECT_THAT(cluster.Events("a"), Contains("CHECKPOINT_DOUBTED"));
  v1::WorkerMessage stopped;
  stopped.mutable_rank_stopped()->set_job("a");
  stopped.mutable_rank_stopped()->set_group_epoch(2);
  cluster.SendFrom("worker-0", stopped);
  cluster.Verified("a", 2, false, true);
  EXPECT_THAT(cluster.Events("a"), Contains("CHECKPOINT_QUARANTINED"));
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
  cluster.SendFrom("worker-0", message);
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_RECOVERING);
  cluster.Verified("a", 1, false, true);
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
  cluster.SendFrom("worker-0", message);
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
                         Case{"DATA", StatusCode::kFailedPrecondition, true},
                         Case{"DATA", StatusCode::kResourceExhausted, true},
                         Case{"DATA", StatusCode::kUnavailable, false},
                         Case{"HANG", StatusCode::kDeadlineExceeded, false}}) {
    TestCluster cluster;
    RunJob(cluster, 2, 2);
    ReportUpTo(cluster, 1, 3);
    v1::WorkerMessage message = FailureOf(cluster, is.code);
    message.mutable_rank_failed()->set_cause(is.cause);
    cluster.SendFrom("worker-0", message);
    cluster.Pass(MakeTimeLimits(3).abort);  // a hang waits for the other ranks' reports
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
  cluster.SendFrom("worker-0", FailureOf(cluster, StatusCode::kNotFound));
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
  cluster.Heartbeat();
  cluster.Pass(std::chrono::seconds(1));  // no rank reports its flight
  EXPECT_EQ(cluster.job("a").record.restarts(), 1);
  cluster.StopRanks("a", 1, {"worker-0"});
  ASSERT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_STARTING);
  for (int second = 0; second < 125; ++second) {
    cluster.Heartbeat();
    cluster.Pass(std::chrono::seconds(1));
  }
  EXPECT_EQ(cluster.job("a").record.restarts(), 2);
}

// One rank of job `a` reports its address, as it does once it has loaded.
void SayAddress(TestCluster& cluster, int32_t rank) {
  v1::WorkerMessage message;
  v1::RankAddress& address = *message.mutable_rank_address();
  address.set_job("a");
  address.set_group_epoch(cluster.job("a").record.group_epoch());
  address.set_rank(rank);
  address.set_address(fmt::format("address-{}", rank));
  cluster.SendFrom(cluster.job("a").last_group.ranks(rank).worker(), message);
}

TEST(Recovery, AHostWhoseRankNeverGetsReadyIsLeftOnceASpareIsFree) {
  TestCluster cluster;
  for (const char* worker : {"worker-0", "worker-1", "worker-2"}) cluster.Connect(worker);
  cluster.Submit(TestSpec("a", 2, 100));
  ASSERT_EQ(cluster.job("a").last_group.ranks(1).worker(), "worker-1");
  SayAddress(cluster, 0);
  EXPECT_LE(SecondsUntilBroken(cluster, 200), 121);
  ASSERT_TRUE(cluster.state().fleet.blame.contains("worker-1"));
  EXPECT_FALSE(cluster.state().fleet.blame.contains("worker-0"));
  EXPECT_THAT(cluster.state().fleet.blame.at("worker-1").faults.back().text,
              HasSubstr("START_TIMEOUT: rank 1 on worker-1: not every rank was ready within 120 s: "
                        "these ranks had not prepared their programs and loaded their state: 1"));
  for (const int32_t rank : {0, 1}) {
    v1::WorkerMessage stopped;
    stopped.mutable_rank_stopped()->set_job("a");
    stopped.mutable_rank_stopped()->set_group_epoch(1);
    stopped.mutable_rank_stopped()->set_rank(rank);
    cluster.SendFrom(fmt::format("worker-{}", rank), stopped);
  }
  ASSERT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_STARTING);
  for (const v1::RankPlacement& placement : cluster.job("a").last_group.ranks()) {
    EXPECT_NE(placement.worker(), "worker-1");
  }
  // If several ranks are late, no single worker is blamed.
  EXPECT_LE(SecondsUntilBroken(cluster, 200), 121);
  EXPECT_FALSE(cluster.state().fleet.blame.contains("worker-0"));
  EXPECT_FALSE(cluster.state().fleet.blame.contains("worker-2"));
}

TEST(Recovery, AFirstStepMayTakeAsLongAsTheRanksOwnWatchdogAllows) {
  TestCluster cluster;
  RunJob(cluster, 2, 2);
  // 100 s per step at 2 GFLOP/s per rank.
  cluster.state().jobs.at("a").plan.set_model_flops_per_step(4e11);
  // The last term is half the detection time, the wait for the ranks' flight reports.
  EXPECT_EQ(SecondsUntilBroken(cluster, 1000), 60 + 5 * 100 + 2);
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

}  // namespace
}  // namespace troupe
