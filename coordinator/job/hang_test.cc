// Tests hung jobs: when the hang is detected and which rank is blamed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/check.h"
#include "coordinator/job/group.h"
#include "coordinator/job/job_view.h"
#include "coordinator/job/recovery.h"
#include "coordinator/test_cluster.h"

namespace troupe {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using Kind = v1::CoordinatorMessage;

// Returns rank `rank`'s report of job `a`: it has entered `entered` operations of its only group,
// that of all ranks, and is blocked in the last of them if `blocked`.
v1::WorkerMessage FlightOf(const TestCluster& cluster, int rank, uint64_t entered, bool blocked) {
  const Job& job = cluster.job("a");
  v1::WorkerMessage message;
  v1::RankFlight& flight = *message.mutable_rank_flight();
  flight.set_job("a");
  flight.set_group_epoch(job.record.group_epoch());
  flight.set_rank(rank);
  flight.set_activity("step 7: reducing gradients");
  v1::GroupFlight& group = *flight.add_groups();
  group.set_group("data/0");
  group.set_axis("data");
  for (int other = 0; other < job.plan.ranks_size(); ++other) group.add_ranks(other);
  group.set_entered(entered);
  if (!blocked) return message;
  group.set_blocked_in(entered);
  group.set_operation("all_reduce");
  group.set_waited_seconds(5.5);
  return message;
}

// Returns the seconds until the ranks of job `a` are asked to stop, with heartbeats throughout.
int SecondsUntilStopped(TestCluster& cluster, int limit) {
  for (int second = 1; second <= limit; ++second) {
    cluster.Heartbeat();
    cluster.Pass(std::chrono::seconds(1));
    if (cluster.Count("worker-0", Kind::kStopRanks) > 0) return second;
  }
  return limit + 1;
}

std::string LastEventOf(TestCluster& cluster, const std::string& event) {
  std::string message;
  const StatusOr<std::vector<v1::JobEvent>> events = ReadEvents(cluster.store(), "a");
  TROUPE_CHECK_OK(events.status());
  for (const v1::JobEvent& one : *events) {
    if (one.event() == event) message = one.message();
  }
  return message;
}

TEST(Hang, IsNoticedByThePaceOnceFiveStepsAreSeen) {
  for (const auto& [steps, seconds] : {std::pair(4, 60), std::pair(5, 6), std::pair(40, 6)}) {
    TestCluster cluster;
    RunJob(cluster, 2, 2);
    ReportUpTo(cluster, 1, steps);  // half a second each
    EXPECT_EQ(SecondsUntilStopped(cluster, 100), seconds) << steps << " steps";
    EXPECT_TRUE(cluster.Last("worker-1", Kind::kStopRanks)->stop_ranks().report_flight());
  }
}

TEST(Hang, IsNoticedLaterWhereTheJobStatesThatItMayPause) {
  TestCluster cluster;
  RunJob(cluster, 1, 1);
  cluster.state().jobs.at("a").spec.mutable_fault_tolerance()->set_hang_seconds(90);
  ReportUpTo(cluster, 1, 9);
  EXPECT_EQ(SecondsUntilStopped(cluster, 100), 90);
}

TEST(Hang, IsNoticedLaterWhereValidationIsDue) {
  TestCluster cluster;
  RunJob(cluster, 1, 1);
  v1::TrainingSpec& training = *cluster.state().jobs.at("a").spec.mutable_training();
  training.set_global_batch_size(8);
  training.set_validation_samples(64);
  training.set_validation_interval(10);
  ReportUpTo(cluster, 1, 9);
  EXPECT_EQ(SecondsUntilStopped(cluster, 100), 6 + 20) << "eight steps' worth of samples";
}

TEST(Hang, IsBlamedOnTheRankThatDidNotArriveAsSoonAsAllHaveReportedWhereTheyAre) {
  TestCluster cluster;
  RunJob(cluster, 3, 3);
  ReportUpTo(cluster, 1, 7);
  ASSERT_EQ(SecondsUntilStopped(cluster, 100), 6);
  cluster.SendFrom("worker-0", FlightOf(cluster, 0, 12, true));
  cluster.SendFrom("worker-1", FlightOf(cluster, 1, 12, true));
  EXPECT_EQ(cluster.job("a").record.restarts(), 0) << "the third may still report where it is";
  cluster.SendFrom("worker-2", FlightOf(cluster, 2, 11, false));
  EXPECT_EQ(cluster.job("a").record.restarts(), 1);
  EXPECT_THAT(LastEventOf(cluster, "RANK_LOST"),
              AllOf(HasSubstr("HANG: rank 2 on worker-2"),
                    HasSubstr("rank 2 did not enter operation 12 (all_reduce"),
                    HasSubstr("no rank reported a step for 6.0 s")));
  EXPECT_TRUE(cluster.state().fleet.blame.contains("worker-2"));
  EXPECT_FALSE(cluster.state().fleet.blame.contains("worker-0"));
  // The job continues, and `describe` still shows what happened, also after a restart.
  cluster.Restart();
  const v1::Job shown = DescribeJob(cluster.job("a"), true);
  EXPECT_FALSE(shown.has_failure());
  EXPECT_EQ(shown.last_failure().cause(), "HANG");
  EXPECT_EQ(shown.last_failure().worker(), "worker-2");
  EXPECT_THAT(shown.last_failure().message(), HasSubstr("rank 2 did not enter operation 12"));
}

TEST(Hang, IsBlamedOnTheRankThatReportsNothingAfterHalfTheDetectionTime) {
  TestCluster cluster;
  RunJob(cluster, 2, 2);
  ReportUpTo(cluster, 1, 7);
  ASSERT_EQ(SecondsUntilStopped(cluster, 100), 6);
  cluster.SendFrom("worker-0", FlightOf(cluster, 0, 12, true));
  cluster.Pass(std::chrono::milliseconds(1400));
  EXPECT_EQ(cluster.job("a").record.restarts(), 0);
  cluster.Pass(std::chrono::milliseconds(200));
  EXPECT_EQ(cluster.job("a").record.restarts(), 1);
  EXPECT_THAT(LastEventOf(cluster, "RANK_LOST"), HasSubstr("HANG: rank 1 on worker-1: rank 1"));
}

TEST(Hang, OfSeveralSilentRanksIsBlamedOnTheirHostIfItIsOneAndElseOnNobody) {
  for (const int workers : {1, 2}) {
    TestCluster cluster;
    cluster.Connect("worker-0", workers == 1 ? 2 : 1);
    cluster.Connect("worker-1");
    cluster.Submit(TestSpec("a", 2, 100));
    cluster.StartRanks("a");
    ReportUpTo(cluster, 1, 7);
    ASSERT_EQ(SecondsUntilStopped(cluster, 100), 6);
    cluster.Pass(std::chrono::milliseconds(1600));
    EXPECT_EQ(cluster.job("a").record.restarts(), 1);
    EXPECT_THAT(LastEventOf(cluster, "RECOVERING"), HasSubstr("ranks 0, 1 do not answer"));
    EXPECT_EQ(cluster.state().fleet.blame.contains("worker-0"), workers == 1) << workers;
    EXPECT_FALSE(cluster.state().fleet.blame.contains("worker-1"));
  }
}

TEST(Hang, ThatARankNoticesItselfIsBlamedByTheSameRule) {
  TestCluster cluster;
  RunJob(cluster, 2, 2);
  ReportUpTo(cluster, 1, 3);
  cluster.SendFrom("worker-0", FlightOf(cluster, 0, 12, true));
  v1::WorkerMessage failed;
  failed.mutable_rank_failed()->set_job("a");
  failed.mutable_rank_failed()->set_group_epoch(1);
  failed.mutable_rank_failed()->set_code(static_cast<int>(StatusCode::kDeadlineExceeded));
  failed.mutable_rank_failed()->set_cause("HANG");
  failed.mutable_rank_failed()->set_message("all_reduce has not finished after 54 s");
  cluster.SendFrom("worker-0", failed);
  cluster.SendFrom("worker-1", FlightOf(cluster, 1, 11, false));
  EXPECT_EQ(cluster.job("a").record.restarts(), 1);
  EXPECT_THAT(LastEventOf(cluster, "RANK_LOST"), HasSubstr("HANG: rank 1 on worker-1: rank 1"));
}

TEST(Hang, OfAJobWithoutRestartsIsItsFailureWithTheRankToBlame) {
  TestCluster cluster;
  RunJob(cluster, 2, 2);
  cluster.state().jobs.at("a").spec.mutable_fault_tolerance()->set_max_restarts(0);
  ReportUpTo(cluster, 1, 7);
  ASSERT_EQ(SecondsUntilStopped(cluster, 100), 6);
  cluster.SendFrom("worker-0", FlightOf(cluster, 0, 12, true));
  cluster.SendFrom("worker-1", FlightOf(cluster, 1, 11, false));
  ASSERT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_FAILED);
  const v1::Failure& failure = cluster.job("a").record.failure();
  EXPECT_EQ(failure.rank(), 1);
  EXPECT_EQ(failure.worker(), "worker-1");
  EXPECT_THAT(failure.message(), HasSubstr("rank 1 did not enter operation 12"));
}

}  // namespace
}  // namespace troupe
