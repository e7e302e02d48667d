#include "coordinator/engine/measured.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <variant>
#include <vector>

#include "coordinator/test_cluster.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;

TEST(Measured, TheFiguresOfAJobDescribeItsLayoutItsIntervalAndItsNewestCommit) {
  TestCluster cluster;
  RunJob(cluster, 2, 2);
  ReportUpTo(cluster, 1, 10);
  cluster.wall_ns = 77;
  cluster.Commit("a", AttemptOf(cluster, 10), 10);
  cluster.state().jobs.at("a").plan.mutable_mesh()->set_pipe(4);
  const JobFigures figures = FiguresOf(cluster.job("a"));
  EXPECT_EQ(figures.job, "a");
  EXPECT_EQ(figures.state, v1::JOB_STATE_RUNNING);
  EXPECT_EQ(figures.step, 10);
  EXPECT_EQ(figures.shape.layout, "pipe=4,data_replicate=2");
  EXPECT_EQ(figures.ranks, 2);
  EXPECT_EQ(figures.checkpoint_steps, 10);
  EXPECT_EQ(figures.checkpoint_seconds, 0);
  ASSERT_TRUE(figures.newest_commit);
  EXPECT_EQ(figures.newest_commit->step, 10);
  EXPECT_EQ(figures.newest_commit->wall_time_ns, 77);
  v1::JobSpec spec = TestSpec("b", 1, 100);
  spec.mutable_checkpoint()->set_interval_seconds(60);
  cluster.Submit(spec);
  const JobFigures of_one = FiguresOf(cluster.job("b"));
  EXPECT_EQ(of_one.state, v1::JOB_STATE_QUEUED);
  EXPECT_EQ(of_one.shape.layout, "1");
  EXPECT_EQ(of_one.checkpoint_steps, 0);
  EXPECT_EQ(of_one.checkpoint_seconds, 60);
  EXPECT_FALSE(of_one.newest_commit);
}

TEST(Measured, DevicesAreLeasedFreeDrainingOrCondemnedAndThoseOfTheQueueAreWanted) {
  TestCluster cluster;
  RunJob(cluster, 2, 4);
  cluster.Submit(TestSpec("b", 3, 100));
  ControlFigures figures = ControlFiguresOf(cluster.state());
  EXPECT_EQ(figures.leader_epoch, cluster.state().leader_epoch);
  EXPECT_EQ(figures.sessions, 4);
  EXPECT_EQ(figures.devices_leased, 2);
  EXPECT_EQ(figures.devices_free, 2);
  EXPECT_EQ(figures.devices_condemned, 0);
  EXPECT_EQ(figures.devices_wanted, 3);
  v1::WorkerMessage draining;
  draining.mutable_draining()->set_seconds_left(100);
  cluster.SendFrom("worker-2", draining);
  figures = ControlFiguresOf(cluster.state());
  EXPECT_EQ(figures.devices_free, 1);
  EXPECT_EQ(figures.devices_draining, 1);
  v1::WorkerMessage condemned;
  condemned.mutable_device_condemned()->set_device(0);
  condemned.mutable_device_condemned()->set_reason("Xid 79");
  cluster.SendFrom("worker-3", condemned);
  cluster.Disconnect("worker-2");
  figures = ControlFiguresOf(cluster.state());
  EXPECT_EQ(figures.sessions, 3);
  EXPECT_EQ(figures.devices_leased, 2);
  EXPECT_EQ(figures.devices_free, 0) << "one has no session";
  EXPECT_EQ(figures.devices_condemned, 1);
}

TEST(Measured, AStepThatAnEarlierGroupAppliedIsRepeatedAndANewGroupIsAStart) {
  TestCluster cluster;
  RunJob(cluster, 1, 1);
  ReportUpTo(cluster, 1, 10);
  cluster.Commit("a", AttemptOf(cluster, 10), 10);
  ReportUpTo(cluster, 11, 12);
  int starts = 0;
  for (const Measurement& measurement : cluster.Crash("a", 0).measurements) {
    if (const auto* const start = std::get_if<StartMeasured>(&measurement)) {
      EXPECT_EQ(start->job, "a");
      ++starts;
    }
  }
  EXPECT_EQ(starts, 1);
  cluster.StartRanks("a", 10);
  std::vector<bool> repeated;
  for (const int64_t step : {11, 12, 13}) {
    for (const Measurement& measurement : cluster.Report("a", step).measurements) {
      if (const auto* const one = std::get_if<StepMeasured>(&measurement))
        repeated.push_back(one->repeated);
    }
  }
  EXPECT_THAT(repeated, ElementsAre(true, true, false));
}

}  // namespace
}  // namespace troupe
