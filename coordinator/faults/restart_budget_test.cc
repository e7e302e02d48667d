#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "coordinator/faults/restart_budget.h"
#include "coordinator/job/job_view.h"
#include "coordinator/job/recovery.h"
#include "coordinator/state/job_failure.h"
#include "coordinator/test_cluster.h"

namespace troupe {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

v1::Failure FailureWith(const std::string& cause, int signal = 0, int exit_code = 0) {
  v1::Failure failure = MakeFailure(cause, "");
  failure.set_signal(signal);
  failure.set_exit_code(exit_code);
  return failure;
}

TEST(Culprit, FollowsFromTheCause) {
  EXPECT_EQ(CulpritOf(FailureWith("WORKER_LOST")), (Culprit{Charged::kNever, Blamed::kHost}));
  EXPECT_EQ(CulpritOf(FailureWith("CHECKPOINT_FAILED")),
            (Culprit{Charged::kDelayed, Blamed::kHost}));
  EXPECT_EQ(CulpritOf(FailureWith("START_TIMEOUT")),
            (Culprit{Charged::kIfRepeated, Blamed::kHost}));
  EXPECT_EQ(CulpritOf(FailureWith("TICKET_EXPIRED")), (Culprit{Charged::kNever, Blamed::kNobody}));
  EXPECT_EQ(CulpritOf(FailureWith("DEVICE_FAULT", SIGKILL)),
            (Culprit{Charged::kIfRepeated, Blamed::kDevice}));
  EXPECT_EQ(CulpritOf(FailureWith("NONFINITE")), (Culprit{Charged::kAlways, Blamed::kNobody}));
  EXPECT_EQ(CulpritOf(FailureWith("RANK_FAILED")), (Culprit{Charged::kAlways, Blamed::kHost}));
  EXPECT_EQ(CulpritOf(FailureWith("SOMETHING_NEW")), (Culprit{Charged::kAlways, Blamed::kHost}));
}

TEST(Culprit, ACrashIsTheJobsOwnUnlessItsProcessWasKilledFromOutside) {
  for (const int signal : {SIGSEGV, SIGABRT, SIGFPE, SIGBUS, SIGILL}) {
    EXPECT_EQ(CulpritOf(FailureWith("RANK_CRASHED", signal)).charged, Charged::kAlways) << signal;
  }
  EXPECT_EQ(CulpritOf(FailureWith("RANK_CRASHED", 0, 3)).charged, Charged::kAlways);
  for (const int signal : {SIGKILL, SIGTERM, SIGINT, SIGHUP}) {
    EXPECT_EQ(CulpritOf(FailureWith("RANK_CRASHED", signal)).charged, Charged::kIfRepeated)
        << signal;
  }
}

TEST(RestartBudget, FaultsOfOthersAreNotCharged) {
  v1::JobRecord record;
  EXPECT_EQ(ChargeFault(Charged::kAlways, 5, &record), 1);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(ChargeFault(Charged::kNever, 5, &record), 0);
  EXPECT_EQ(ChargeFault(Charged::kAlways, 5, &record), 2) << "they do not renew it either";
}

TEST(RestartBudget, OwnFaultsAreChargedWhateverTheirStep) {
  v1::JobRecord record;
  EXPECT_EQ(ChargeFault(Charged::kAlways, 50, &record), 1);
  EXPECT_EQ(ChargeFault(Charged::kAlways, 20, &record), 2);
  EXPECT_EQ(ChargeFault(Charged::kAlways, 40, &record), 3);
}

TEST(RestartBudget, WhatMayBeAnothersIsChargedOnlyWhereItRepeatsAtTheSameStep) {
  v1::JobRecord record;
  for (const int64_t step : {10, 25, 12, 30, 18}) {
    EXPECT_EQ(ChargeFault(Charged::kIfRepeated, step, &record), 1) << step;
  }
  EXPECT_EQ(ChargeFault(Charged::kIfRepeated, 18, &record), 2);
  EXPECT_EQ(ChargeFault(Charged::kIfRepeated, 17, &record), 3) << "reports may be a step behind";
  EXPECT_EQ(ChargeFault(Charged::kIfRepeated, 30, &record), 1);
}

TEST(RestartBudget, AStepBeyondTheHighestRenewsIt) {
  v1::JobRecord record;
  ChargeFault(Charged::kIfRepeated, 10, &record);
  ChargeFault(Charged::kAlways, 10, &record);
  RenewBudget(&record);
  EXPECT_EQ(ChargeFault(Charged::kIfRepeated, 11, &record), 1);
  EXPECT_EQ(ChargeFault(Charged::kAlways, 11, &record), 2);
}

// The job's newest group loses worker-0, which comes back at once.
void LoseTheWorker(TestCluster& cluster) {
  cluster.Disconnect("worker-0");
  cluster.Connect("worker-0");
}

TEST(RestartBudget, LostHostsSpendNothingAndAreNotWaitedForLonger) {
  TestCluster cluster;
  RunJob(cluster, 1, 1);
  for (int life = 1; life <= 20; ++life) {
    LoseTheWorker(cluster);
    ASSERT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_STARTING)
        << "life " << life << ": placed again without a pause";
    cluster.StartRanks("a");
  }
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_RUNNING);
  EXPECT_EQ(DescribeJob(cluster.job("a"), false).restarts(), 20)
      << "each is a recovery all the same";
  EXPECT_THAT(cluster.Events("a"), Contains("RECOVERED"));
}

TEST(RestartBudget, LostHostsBetweenTheJobsOwnFaultsDoNotSaveIt) {
  TestCluster cluster;
  RunJob(cluster, 1, 1);
  for (int life = 1; life <= 20 && !HasEnded(cluster.job("a")); ++life) {
    LoseTheWorker(cluster);
    cluster.StartRanks("a");
    cluster.Crash("a", 0, 3);
    for (int second = 0; second < 6; ++second) {
      cluster.Heartbeat();
      cluster.Pass(std::chrono::seconds(1));
    }
    if (!HasEnded(cluster.job("a"))) cluster.StartRanks("a");
  }
  const v1::JobRecord& record = cluster.job("a").record;
  EXPECT_EQ(record.state(), v1::JOB_STATE_FAILED);
  EXPECT_EQ(record.restarts(), 6 + 5) << "of lost hosts, of its own faults";
  EXPECT_EQ(record.failure().cause(), "RESTART_BUDGET");
  EXPECT_THAT(record.failure().message(), HasSubstr("5 recoveries from its own faults"));
}

// The folder of checkpoints, or another one that the job reads.
class AbsentFolder : public testing::TestWithParam<bool> {};

INSTANTIATE_TEST_SUITE_P(RestartBudget, AbsentFolder, testing::Bool());

TEST_P(AbsentFolder, EndsNoJobAndIsTriedEverMoreRarely) {
  TestCluster cluster;
  RunJob(cluster, 1, 1);
  for (int second = 0; second < 120; ++second) {
    // Each time the job starts, its only rank fails at once and its device becomes free.
    for (int start = 0; start < 10; ++start) {
      const v1::JobRecord record = cluster.job("a").record;
      if (!cluster.job("a").group) break;
      if (record.state() == v1::JOB_STATE_STARTING) cluster.StartRanks("a");
      v1::WorkerMessage failed;
      failed.mutable_rank_failed()->set_job("a");
      failed.mutable_rank_failed()->set_group_epoch(record.group_epoch());
      failed.mutable_rank_failed()->set_code(static_cast<int>(StatusCode::kUnavailable));
      failed.mutable_rank_failed()->set_cause("STORAGE");
      failed.mutable_rank_failed()->set_of_data(GetParam());
      cluster.SendFrom("worker-0", failed);
      cluster.StopRanks("a", record.group_epoch(), {"worker-0"});
    }
    cluster.Heartbeat();
    cluster.Pass(std::chrono::seconds(1));
  }
  EXPECT_FALSE(HasEnded(cluster.job("a")));
  EXPECT_GT(cluster.job("a").record.restarts(), 15);
  EXPECT_LT(cluster.job("a").record.restarts(), 40);
  for (int second = 0; second < 6; ++second) {
    cluster.Heartbeat();
    cluster.Pass(std::chrono::seconds(1));
  }
  cluster.StartRanks("a");
  ReportUpTo(cluster, 1, 1);
  EXPECT_EQ(cluster.job("a").delayed_recoveries, 0);
}

TEST(RestartBudget, RanksThatAreKilledAtOtherStepsEachTimeSpendNothing) {
  TestCluster cluster;
  RunJob(cluster, 1, 1);
  ReportUpTo(cluster, 1, 9);
  for (const int64_t step : {3, 6, 2, 8, 5, 3, 7, 1, 4, 8, 2, 6, 9, 5, 7, 3, 1, 6, 4, 8}) {
    cluster.Crash("a", 0);
    ASSERT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_STARTING) << "no pause, no end";
    cluster.StartRanks("a");
    ReportUpTo(cluster, 1, step);
  }
  EXPECT_EQ(cluster.job("a").record.restarts(), 20);
}

TEST(RestartBudget, RanksThatAreKilledAtTheSameStepAgainAndAgainEndTheJob) {
  TestCluster cluster;
  RunJob(cluster, 1, 1);
  for (int life = 1; life <= 10 && !HasEnded(cluster.job("a")); ++life) {
    ReportUpTo(cluster, 1, 4);
    cluster.Crash("a", 0);
    for (int second = 0; second < 6; ++second) {
      cluster.Heartbeat();
      cluster.Pass(std::chrono::seconds(1));
    }
    if (!HasEnded(cluster.job("a"))) cluster.StartRanks("a");
  }
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_FAILED);
  EXPECT_EQ(cluster.job("a").record.restarts(), 5);
}

TEST(RestartBudget, ARestartOfTheCoordinatorKeepsWhatWasSpent) {
  TestCluster cluster;
  RunJob(cluster, 1, 1);
  for (int life = 1; life <= 10 && !HasEnded(cluster.job("a")); ++life) {
    cluster.Crash("a", 0, 3);
    if (HasEnded(cluster.job("a"))) break;
    cluster.Restart();
    cluster.Connect("worker-0");
    for (int second = 0; second < 6; ++second) {
      cluster.Heartbeat();
      cluster.Pass(std::chrono::seconds(1));
    }
    cluster.StartRanks("a");
  }
  EXPECT_EQ(cluster.job("a").record.restarts(), 5);
}

}  // namespace
}  // namespace troupe
