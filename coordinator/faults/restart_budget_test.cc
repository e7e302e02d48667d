#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <string>
#include <tuple>

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
  for (const int signal : {SIGSEGV, SIGABRT, SIGFPE, SIGILL}) {
    EXPECT_EQ(CulpritOf(FailureWith("RANK_CRASHED", signal)).charged, Charged::kAlways) << signal;
  }
  EXPECT_EQ(CulpritOf(FailureWith("RANK_CRASHED", 0, 3)).charged, Charged::kAlways);
  // SIGBUS ends a rank whose mapped data are on a disk that is gone.
  for (const int signal : {SIGKILL, SIGTERM, SIGINT, SIGHUP, SIGBUS}) {
    EXPECT_EQ(CulpritOf(FailureWith("RANK_CRASHED", signal)),
              (Culprit{Charged::kIfRepeated, Blamed::kHost}))
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

// The only rank of job `a` fails because a folder is not there.
void FailInAbsentFolder(TestCluster& cluster, bool of_data, StatusCode code) {
  v1::WorkerMessage message;
  v1::RankFailed& failed = *message.mutable_rank_failed();
  failed.set_job("a");
  failed.set_group_epoch(cluster.job("a").record.group_epoch());
  failed.set_code(static_cast<int>(code));
  failed.set_cause("STORAGE");
  failed.set_of_data(of_data);
  cluster.SendFrom("worker-0", message);
}

// The folder of checkpoints, or another one that the job reads. A folder that does not exist and a
// disk that does not answer have different codes.
class AbsentFolder : public testing::TestWithParam<std::tuple<bool, StatusCode>> {};

INSTANTIATE_TEST_SUITE_P(RestartBudget, AbsentFolder,
                         testing::Combine(testing::Bool(),
                                          testing::Values(StatusCode::kUnavailable,
                                                          StatusCode::kFailedPrecondition)));

TEST_P(AbsentFolder, EndsNoJobAndIsTriedEverMoreRarely) {
  TestCluster cluster;
  RunJob(cluster, 1, 1);
  ReportUpTo(cluster, 1, 1);
  for (int second = 0; second < 120; ++second) {
    // Each time the job starts, its only rank fails at once and its device becomes free.
    for (int start = 0; start < 10 && cluster.job("a").group; ++start) {
      const uint64_t epoch = cluster.job("a").record.group_epoch();
      FailInAbsentFolder(cluster, std::get<0>(GetParam()), std::get<1>(GetParam()));
      v1::WorkerMessage stopped;
      stopped.mutable_rank_stopped()->set_job("a");
      stopped.mutable_rank_stopped()->set_group_epoch(epoch);
      cluster.SendFrom("worker-0", stopped);
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
  ReportUpTo(cluster, 1, 2);
  EXPECT_EQ(cluster.job("a").delayed_recoveries, 0);
}

TEST(RestartBudget, DataThatAreAwayAreWaitedForByAJobThatRanWithoutAStep) {
  for (const bool restarts : {false, true}) {
    TestCluster cluster;
    cluster.Connect("worker-0");
    cluster.Submit(TestSpec("a", 1, 100));
    v1::WorkerMessage message;
    v1::RankAddress& address = *message.mutable_rank_address();
    address.set_job("a");
    address.set_group_epoch(1);
    address.set_address("address-0");
    address.mutable_data()->add_datasets()->set_documents(40);
    cluster.SendFrom("worker-0", message);
    cluster.StartRanks("a");
    if (restarts) {
      cluster.Restart();
      cluster.Reconnect("worker-0");
    }
    ASSERT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_RUNNING);
    cluster.Crash("a", 0);
    ASSERT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_STARTING);
    FailInAbsentFolder(cluster, true, StatusCode::kFailedPrecondition);
    EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_RECOVERING);
    EXPECT_EQ(cluster.job("a").record.highest_step(), 0);
    EXPECT_EQ(cluster.state().fleet.blame.at("worker-0").faults.back().weight, 1)
        << "the host is not set aside at once";
  }
  TestCluster fresh;
  fresh.Connect("worker-0");
  fresh.Submit(TestSpec("a", 1, 100));
  FailInAbsentFolder(fresh, true, StatusCode::kFailedPrecondition);
  EXPECT_EQ(fresh.job("a").record.state(), v1::JOB_STATE_FAILED) << "no other host may have them";
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
