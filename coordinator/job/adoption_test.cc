// Tests what a restarted coordinator does with groups that kept running meanwhile.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/job/group.h"
#include "coordinator/job/job_pace.h"
#include "coordinator/job/recovery.h"
#include "coordinator/test_cluster.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;
using Kind = v1::CoordinatorMessage;

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
  // Each step has one intent, because intents keep their attempts.
  EXPECT_EQ(cluster.job("a").attempts.size(), 10u);
}

TEST(Adoption, AHelloWhoseTicketEndsAfterTheLastStepIsCutToIt) {
  TestCluster cluster;
  RunJob(cluster, 1, 1);
  cluster.Restart();
  ASSERT_EQ(cluster.worker("worker-0").held.size(), 1u);
  cluster.worker("worker-0").held[0].set_ticket_end_step(1000);
  cluster.Reconnect("worker-0");
  ASSERT_NE(cluster.Last("worker-0", Kind::kTicket), nullptr);
  EXPECT_EQ(cluster.Last("worker-0", Kind::kTicket)->ticket().end_step(), cluster.job("a").steps());
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

// The failure that the job has survived, if no host is blamed for it.
std::string FailureOfNobody(TestCluster& cluster) {
  EXPECT_TRUE(cluster.state().fleet.blame.empty());
  const v1::Failure& failure = cluster.job("a").record.last_failure();
  EXPECT_EQ(failure.cause(), "WORKER_LOST");
  EXPECT_EQ(failure.worker(), "");
  return failure.message();
}

TEST(Adoption, AWorkerThatEndedMeanwhileIsNotBlamedBecauseItMayHaveBeenAskedToStop) {
  {
    TestCluster cluster;
    RunJob(cluster, 2, 2);
    cluster.Restart();
    cluster.Reconnect("worker-0");
    cluster.Connect("worker-1");
    EXPECT_EQ(FailureOfNobody(cluster),
              "worker-1, while the coordinator was away: it ended and reconnected as a new "
              "incarnation");
  }
  {
    TestCluster cluster;
    RunJob(cluster, 2, 2);
    cluster.Restart();
    cluster.Reconnect("worker-0");
    cluster.Pass(std::chrono::seconds(2));
    cluster.Heartbeat();
    cluster.Pass(std::chrono::milliseconds(1100));
    EXPECT_THAT(FailureOfNobody(cluster), HasSubstr("did not come back"));
  }
  TestCluster cluster;
  RunJob(cluster, 2, 2);
  cluster.Restart();
  cluster.Reconnect("worker-0");
  v1::WorkerMessage message;
  v1::RankFailed& failed = *message.mutable_rank_failed();
  failed.set_job("a");
  failed.set_group_epoch(1);
  failed.set_cause("COLLECTIVE");
  failed.set_secondary(true);
  cluster.SendFrom("worker-0", message);
  EXPECT_THAT(FailureOfNobody(cluster), HasSubstr("worker-1, while the coordinator was away"));
}

TEST(Adoption, AWorkerThatCameBackAndIsLostWhileOthersAreAwaitedIsBlamed) {
  TestCluster cluster;
  RunJob(cluster, 2, 2);
  cluster.Restart();
  cluster.Reconnect("worker-0");
  cluster.Disconnect("worker-0");
  cluster.Connect("worker-0");
  EXPECT_EQ(cluster.job("a").record.last_failure().worker(), "worker-0");
  EXPECT_TRUE(cluster.state().fleet.blame.contains("worker-0"));
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
    cluster.SendFrom("worker-0", message);
  }
  cluster.Pass(std::chrono::seconds(1));
  cluster.Restart();
  cluster.Reconnect("worker-0");
  EXPECT_EQ(MedianStepSeconds(cluster.job("a")), 100);
  // Half the detection time is added to collect the rank's report of the hang.
  EXPECT_EQ(SecondsUntilBroken(cluster, 1000), 500 + 2);
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
  // Only one of the two workers comes back.
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
  // The group is durable, but StartRanks was never sent.
  cluster.DoAndDie(call);
  cluster.Reconnect("worker-0");
  EXPECT_EQ(cluster.Last("worker-0", Kind::kStartRanks)->start_ranks().group_epoch(), 2u);
  EXPECT_EQ(cluster.job("a").record.restarts(), 0);
  // StartRanks was sent, and the rank ran when the coordinator died without knowing it.
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
