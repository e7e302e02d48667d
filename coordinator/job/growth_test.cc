// Tests a job that continues with fewer ranks and grows back.
#include "coordinator/job/growth.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/history/receipt.h"
#include "coordinator/job/job_view.h"
#include "coordinator/state/stop.h"
#include "coordinator/test_cluster.h"

namespace troupe {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

using Kind = v1::CoordinatorMessage;

constexpr Duration kGrowthPatience = std::chrono::seconds(120);

// Lets time pass, with heartbeats.
void PassWithHeartbeats(TestCluster& cluster, Duration duration) {
  for (Duration passed{}; passed < duration; passed += std::chrono::seconds(1)) {
    cluster.Heartbeat();
    cluster.Pass(std::chrono::seconds(1));
  }
}

// Lets the growth patience pass while the job trains on from the step that it has reached.
void TrainForTheGrowthPatience(TestCluster& cluster) {
  for (int i = 0; i < 4; ++i) {
    cluster.Report("a", cluster.job("a").record.step() + 1);
    PassWithHeartbeats(cluster, kGrowthPatience / 4);
  }
}

v1::JobSpec SpecThatMayShrink(int ranks) {
  v1::JobSpec spec = TestSpec("a", ranks, 100);
  spec.mutable_fault_tolerance()->set_allow_layout_change(true);
  // Exceeds the quarter of the growth patience that passes between two steps.
  spec.mutable_fault_tolerance()->set_hang_seconds(300);
  return spec;
}

// Job `a`, submitted for two ranks, has lost worker-1 after step 3 and runs on one rank from step
// 4.
void RunShrunkJob(TestCluster& cluster) {
  cluster.Connect("worker-0");
  cluster.Connect("worker-1");
  cluster.Submit(SpecThatMayShrink(2));
  cluster.StartRanks("a");
  ReportUpTo(cluster, 1, 3);
  CreateCheckpointCall call{cluster.next_call++, {}};
  call.request.set_job("a");
  cluster.Do(call);
  cluster.Commit("a", 2, 3);
  cluster.Disconnect("worker-1");
  PassWithHeartbeats(cluster, std::chrono::seconds(4));
  cluster.StopRanks("a", 1, {"worker-0"});
  PassWithHeartbeats(cluster, std::chrono::seconds(8));
  ASSERT_EQ(cluster.job("a").plan.ranks_size(), 1);
  cluster.StartRanks("a", 3);
  ASSERT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_RUNNING);
}

// Returns the attempt after which the ranks of the shrunk job shall stop; 0: none.
int64_t RequestedStop(TestCluster& cluster) {
  const v1::CoordinatorMessage* const asked = cluster.Last("worker-0", Kind::kCheckpointRequest);
  if (asked == nullptr || !asked->checkpoint_request().intent().then_stop()) return 0;
  return asked->checkpoint_request().intent().attempt();
}

// Worker-1 is back, step 7 is completed and the job has asked its rank to stop after a checkpoint.
void BeginToGrow(TestCluster& cluster) {
  RunShrunkJob(cluster);
  cluster.Connect("worker-1");
  TrainForTheGrowthPatience(cluster);
  ASSERT_GT(RequestedStop(cluster), 0);
}

TEST(Growth, AShrunkJobKeepsTheSpecItWasSubmittedWith) {
  TestCluster cluster;
  RunShrunkJob(cluster);
  for (const bool restarted : {false, true}) {
    if (restarted) cluster.Restart();
    const Job& job = cluster.job("a");
    EXPECT_EQ(job.spec.parallelism().data_parallel_replicate_degree(), 2);
    EXPECT_EQ(job.plan.mesh().data_replicate(), 1);
    const v1::Job shown = DescribeJob(job, true);
    EXPECT_EQ(shown.layout().data_replicate(), 1);
    EXPECT_EQ(shown.submitted_layout().data_replicate(), 2);
    EXPECT_EQ(shown.spec().parallelism().data_parallel_replicate_degree(), 2);
    EXPECT_EQ(shown.ranks_size(), 1);
  }
}

TEST(Growth, ItsRanksAreStartedOnTheRunningLayout) {
  TestCluster cluster;
  RunShrunkJob(cluster);
  const v1::StartRanks& start = cluster.Last("worker-0", Kind::kStartRanks)->start_ranks();
  EXPECT_EQ(start.spec().parallelism().data_parallel_replicate_degree(), 1);
  EXPECT_EQ(start.plan().mesh().data_replicate(), 1);
}

TEST(Growth, AShrunkJobHasNotReachedItsTarget) {
  TestCluster cluster;
  RunShrunkJob(cluster);
  Job job = cluster.job("a");
  job.tally.set_plan_digest(job.plan.digest());
  job.tally.set_steady_steps(50);
  v1::ParallelismSpec& asked = *job.spec.mutable_parallelism();
  v1::MeshDegrees& mesh = *job.plan.mutable_mesh();
  asked.set_data_parallel_shard_degree(1);
  asked.set_tensor_parallel_degree(1);
  asked.set_pipeline_parallel_degree(1);
  asked.set_context_parallel_degree(1);
  asked.set_expert_parallel_degree(1);
  mesh.set_data_shard(1);
  mesh.set_tensor(1);
  mesh.set_pipe(1);
  mesh.set_context(1);
  mesh.set_expert(1);
  EXPECT_FALSE(MakeReceipt(job).target_reached());
  EXPECT_THAT(MakeReceipt(job).target_missed(), HasSubstr("a layout other"));
  mesh.set_data_replicate(2);
  EXPECT_TRUE(MakeReceipt(job).target_reached()) << "all else is as asked for";
}

TEST(Growth, AResumedJobHasItsSubmittedLayoutAgain) {
  TestCluster cluster;
  RunShrunkJob(cluster);
  CancelJobCall cancel{cluster.next_call++, {}};
  cancel.request.set_name("a");
  cluster.Do(cancel);
  EXPECT_EQ(DescribeJob(cluster.job("a"), false).layout().data_replicate(), 1) << "what ran last";
  ResumeJobCall resume{cluster.next_call++, {}};
  resume.request.set_name("a");
  ASSERT_TRUE(cluster.Do(resume).replies.at(0).status.ok());
  for (const bool restarted : {false, true}) {
    if (restarted) cluster.Restart();
    EXPECT_EQ(cluster.job("a").plan.ranks_size(), 2);
    EXPECT_FALSE(cluster.job("a").smaller);
  }
}

TEST(Growth, AJobGrowsBackAtAStepBoundaryOnceItsDevicesHaveBeenThereForTwoMinutes) {
  TestCluster cluster;
  BeginToGrow(cluster);
  const int64_t attempt = RequestedStop(cluster);
  const int64_t restarts = cluster.job("a").record.restarts();
  // The ranks stop after step 8, at which all of them know of the request.
  cluster.Report("a", 8);
  cluster.Commit("a", attempt, 8);
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_RECOVERING);
  EXPECT_EQ(cluster.Last("worker-0", Kind::kStopRanks)->stop_ranks().group_epoch(), 2u);
  cluster.StopRanks("a", 2, {"worker-0"});
  ASSERT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_STARTING);
  EXPECT_EQ(cluster.job("a").plan.ranks_size(), 2);
  const v1::StartRanks& start = cluster.Last("worker-1", Kind::kStartRanks)->start_ranks();
  EXPECT_THAT(start.restore_path(), HasSubstr(fmt::format("attempt-{}", attempt)));
  EXPECT_EQ(start.spec().parallelism().data_parallel_replicate_degree(), 2);
  cluster.StartRanks("a", 8);
  ReportUpTo(cluster, 9, 10);
  cluster.Pass(std::chrono::seconds(1));
  EXPECT_EQ(cluster.job("a").record.restarts(), restarts) << "growing is no recovery";
  EXPECT_FALSE(cluster.job("a").smaller);
  EXPECT_THAT(cluster.Events("a"), Contains("GREW"));
  // Each step appears once; the epoch in the history changes after step 8.
  const auto rows = ReadHistory(cluster.store(), "a", 0, 100);
  ASSERT_EQ(rows->size(), 10u);
  for (const v1::StepEvent& row : *rows) {
    EXPECT_EQ(row.group_epoch(), row.step() <= 3 ? 1u : row.step() <= 8 ? 2u : 3u) << row.step();
  }
}

TEST(Growth, ThePlanOfTheSubmittedLayoutIsTheOneItHadBefore) {
  TestCluster cluster;
  RunShrunkJob(cluster);
  cluster.Restart();
  cluster.Reconnect("worker-0");
  cluster.Connect("worker-1");
  TrainForTheGrowthPatience(cluster);
  const int64_t attempt = RequestedStop(cluster);
  ASSERT_GT(attempt, 0) << "a restarted coordinator counts the two minutes anew";
  cluster.Report("a", 8);
  cluster.Commit("a", attempt, 8);
  cluster.StopRanks("a", 2, {"worker-0"});
  EXPECT_EQ(cluster.job("a").plan.digest(), "plan of 2 ranks");
  EXPECT_EQ(cluster.job("a").plan.device().model(), "model-a");
}

TEST(Growth, AWorkerThatGoesAwayAgainMakesItWaitAnew) {
  TestCluster cluster;
  RunShrunkJob(cluster);
  for (int time = 0; time < 3; ++time) {
    cluster.Connect("worker-1");
    for (int i = 0; i < 3; ++i) {
      cluster.Report("a", cluster.job("a").record.step() + 1);
      PassWithHeartbeats(cluster, kGrowthPatience / 4 + std::chrono::seconds(8));
    }
    cluster.Disconnect("worker-1");
    PassWithHeartbeats(cluster, std::chrono::seconds(8));
    EXPECT_EQ(RequestedStop(cluster), 0);
  }
  EXPECT_THAT(cluster.Events("a"), Not(Contains("GROWING")));
}

TEST(Growth, AJobWithoutAFolderDoesNotStopToGrow) {
  TestCluster cluster;
  cluster.Connect("worker-0");
  cluster.Connect("worker-1");
  v1::JobSpec spec = SpecThatMayShrink(2);
  spec.mutable_checkpoint()->set_folder("");
  cluster.Submit(spec);
  cluster.StartRanks("a");
  cluster.Disconnect("worker-1");
  PassWithHeartbeats(cluster, std::chrono::seconds(4));
  cluster.StopRanks("a", 1, {"worker-0"});
  PassWithHeartbeats(cluster, std::chrono::seconds(8));
  cluster.StartRanks("a");
  ASSERT_EQ(cluster.job("a").plan.ranks_size(), 1);
  cluster.Connect("worker-1");
  for (int time = 0; time < 2; ++time) TrainForTheGrowthPatience(cluster);
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_RUNNING);
  EXPECT_THAT(cluster.Events("a"), Not(Contains("GROWING")));
  // The job's next failure brings all ranks back.
  cluster.Crash("a", 0);
  EXPECT_EQ(cluster.job("a").plan.ranks_size(), 2);
}

TEST(Growth, AJobThatCannotSaveDoesNotStopToGrowUntilItCan) {
  TestCluster cluster;
  RunShrunkJob(cluster);
  cluster.Connect("worker-1");
  const auto ask = [&cluster] {
    CreateCheckpointCall call{cluster.next_call++, {}};
    call.request.set_job("a");
    cluster.Do(call);
    return cluster.job("a").record.last_attempt();
  };
  v1::WorkerMessage message;
  message.mutable_shard_failed()->set_job("a");
  message.mutable_shard_failed()->set_group_epoch(cluster.job("a").record.group_epoch());
  message.mutable_shard_failed()->set_attempt(ask());
  message.mutable_shard_failed()->set_reason("No space left on device");
  cluster.SendFrom("worker-0", message);
  for (int time = 0; time < 2; ++time) TrainForTheGrowthPatience(cluster);
  EXPECT_THAT(cluster.Events("a"), Not(Contains("GROWING")));
  cluster.Commit("a", ask(), cluster.job("a").record.step());
  TrainForTheGrowthPatience(cluster);
  EXPECT_GT(RequestedStop(cluster), 0);
}

TEST(Growth, AFailureBeforeTheCheckpointRecoversOnTheSubmittedLayoutAtOnce) {
  TestCluster cluster;
  BeginToGrow(cluster);
  cluster.Crash("a", 0);
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_STARTING);
  EXPECT_EQ(cluster.job("a").plan.ranks_size(), 2);
  EXPECT_EQ(StopAttempt(cluster.job("a").record), 0);
  cluster.StartRanks("a", 3);
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_RUNNING);
  EXPECT_THAT(cluster.Events("a"), Contains("GROWTH_CALLED_OFF"));
}

TEST(Growth, ACrashOnTheSmallerLayoutGoesOnThereAtOnce) {
  TestCluster cluster;
  RunShrunkJob(cluster);
  cluster.Crash("a", 0);
  ASSERT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_STARTING)
      << "there is nothing to wait for";
  EXPECT_EQ(cluster.job("a").plan.ranks_size(), 1);
}

TEST(Growth, DevicesThatAreGoneAgainWhenTheRanksHaveStoppedLeadBackToTheSmallerLayout) {
  TestCluster cluster;
  BeginToGrow(cluster);
  const int64_t attempt = RequestedStop(cluster);
  cluster.Report("a", 8);
  cluster.Disconnect("worker-1");
  cluster.Commit("a", attempt, 8);
  cluster.StopRanks("a", 2, {"worker-0"});
  ASSERT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_STARTING);
  EXPECT_EQ(cluster.job("a").plan.ranks_size(), 1);
  cluster.StartRanks("a", 8);
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_RUNNING);
  EXPECT_THAT(cluster.Events("a"), Not(Contains("GREW")));
}

TEST(Growth, ACancelWithACheckpointOfAJobThatGrowsEndsItWhereItStops) {
  TestCluster cluster;
  BeginToGrow(cluster);
  const int64_t attempt = RequestedStop(cluster);
  CancelJobCall cancel{cluster.next_call++, {}};
  cancel.request.set_name("a");
  cancel.request.set_checkpoint(true);
  EXPECT_TRUE(cluster.Do(cancel).replies.empty()) << "answered once it is committed";
  cluster.Report("a", 8);
  cluster.Commit("a", attempt, 8);
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_CANCELLED);
}

TEST(Growth, ARestartOfTheCoordinatorWhileTheRanksStopLosesNothing) {
  TestCluster cluster;
  BeginToGrow(cluster);
  const int64_t attempt = RequestedStop(cluster);
  cluster.Report("a", 8);
  cluster.Restart();
  cluster.Reconnect("worker-0");
  cluster.Reconnect("worker-1");
  cluster.Report("a", 8);
  cluster.Commit("a", attempt, 8);
  cluster.StopRanks("a", 2, {"worker-0"});
  EXPECT_EQ(cluster.job("a").plan.ranks_size(), 2);
  cluster.Restart();
  cluster.Connect("worker-0");
  cluster.Connect("worker-1");
  EXPECT_EQ(cluster.job("a").plan.ranks_size(), 2);
  EXPECT_FALSE(cluster.job("a").smaller);
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_STARTING);
}

// Fails the attempt for which the ranks have stopped and every further one.
void FailToSaveUntilImagesAreTaken(TestCluster& cluster) {
  for (int second = 0; second < 1000; ++second) {
    v1::WorkerMessage failed;
    failed.mutable_shard_failed()->set_job("a");
    failed.mutable_shard_failed()->set_group_epoch(cluster.job("a").record.group_epoch());
    failed.mutable_shard_failed()->set_attempt(cluster.job("a").record.last_attempt());
    failed.mutable_shard_failed()->set_reason("no space left");
    cluster.SendFrom("worker-0", failed);
    PassWithHeartbeats(cluster, std::chrono::seconds(1));
    if (cluster.Last("worker-0", Kind::kSaveImages) != nullptr) return;
  }
  FAIL() << "no image was asked for";
}

TEST(Growth, AJobWhoseStepCannotBeSavedGoesOnFromItsImagesOnTheSmallerLayout) {
  TestCluster cluster;
  BeginToGrow(cluster);
  cluster.Report("a", 8);
  FailToSaveUntilImagesAreTaken(cluster);
  v1::WorkerMessage message;
  message.mutable_image_saved()->set_job("a");
  message.mutable_image_saved()->set_group_epoch(2);
  message.mutable_image_saved()->set_step(8);
  message.mutable_image_saved()->set_path("/data/images/a/step-8");
  message.mutable_image_saved()->set_digest("sha256:0");
  cluster.SendFrom("worker-0", message);
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_RECOVERING);
  cluster.Restart();
  cluster.Reconnect("worker-1");
  cluster.Reconnect("worker-0");
  cluster.StopRanks("a", 2, {"worker-0"});
  ASSERT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_STARTING);
  const v1::StartRanks& start = cluster.Last("worker-0", Kind::kStartRanks)->start_ranks();
  EXPECT_EQ(start.restore_images().images_size(), 1);
  EXPECT_EQ(start.spec().parallelism().data_parallel_replicate_degree(), 1);
  EXPECT_EQ(start.plan().ranks_size(), 1);
  EXPECT_EQ(cluster.job("a").spec.parallelism().data_parallel_replicate_degree(), 2);
  cluster.StartRanks("a", 8);
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_RUNNING);
  EXPECT_THAT(cluster.Events("a"), Contains("GROWTH_CALLED_OFF"));
  TrainForTheGrowthPatience(cluster);
  EXPECT_EQ(StopAttempt(cluster.job("a").record), 0) << "nothing was saved since";
}

// Runs the shrunk job to its last step, where the final save fails and the job ends with the image
// of its one rank.
void EndWithAnImage(TestCluster& cluster) {
  RunShrunkJob(cluster);
  ReportUpTo(cluster, 4, 100);
  FailToSaveUntilImagesAreTaken(cluster);
  v1::WorkerMessage message;
  message.mutable_image_saved()->set_job("a");
  message.mutable_image_saved()->set_group_epoch(2);
  message.mutable_image_saved()->set_step(100);
  message.mutable_image_saved()->set_path("/data/images/a/step-100");
  message.mutable_image_saved()->set_digest("sha256:0");
  cluster.SendFrom("worker-0", message);
  cluster.StopRanks("a", 2, {"worker-0"});
  ASSERT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_FAILED);
}

Status ResumeTo(TestCluster& cluster, int64_t steps, int ranks = 0) {
  ResumeJobCall resume{cluster.next_call++, {}};
  resume.request.set_name("a");
  resume.request.mutable_overrides()->mutable_training()->set_steps(steps);
  if (ranks > 0) {
    resume.request.mutable_overrides()->mutable_parallelism()->set_data_parallel_replicate_degree(
        ranks);
  }
  return cluster.Do(resume).replies.at(0).status;
}

TEST(Growth, AJobThatEndedWithImagesOfTheSmallerLayoutIsResumedOnItAndGrowsFromThere) {
  TestCluster cluster;
  EndWithAnImage(cluster);
  cluster.Connect("worker-1");
  const Status resumed = ResumeTo(cluster, 200);
  ASSERT_TRUE(resumed.ok()) << resumed;
  for (const bool restarted : {false, true}) {
    if (restarted) {
      cluster.Restart();
      cluster.Reconnect("worker-0");
      cluster.Reconnect("worker-1");
    }
    ASSERT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_STARTING);
    const v1::StartRanks& start = cluster.Last("worker-0", Kind::kStartRanks)->start_ranks();
    EXPECT_EQ(start.restore_images().images_size(), 1);
    EXPECT_EQ(start.plan().ranks_size(), 1);
    EXPECT_EQ(start.plan().device().model(), "model-a") << "with the same kernels";
    EXPECT_EQ(start.spec().parallelism().data_parallel_replicate_degree(), 1);
    EXPECT_EQ(start.spec().training().steps(), 200);
    EXPECT_EQ(cluster.job("a").spec.parallelism().data_parallel_replicate_degree(), 2);
    EXPECT_EQ(DescribeJob(cluster.job("a"), true).submitted_layout().data_replicate(), 2);
  }
  cluster.StartRanks("a", 100);
  ASSERT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_RUNNING);
  cluster.Report("a", 101);
  CreateCheckpointCall call{cluster.next_call++, {}};
  call.request.set_job("a");
  cluster.Do(call);
  cluster.Commit("a", cluster.job("a").record.last_attempt(), 101);
  EXPECT_EQ(cluster.job("a").images.step(), 0);
  TrainForTheGrowthPatience(cluster);
  const int64_t attempt = RequestedStop(cluster);
  ASSERT_GT(attempt, 0);
  cluster.Commit("a", attempt, cluster.job("a").record.step());
  cluster.StopRanks("a", cluster.job("a").record.group_epoch(), {"worker-0"});
  EXPECT_EQ(cluster.job("a").plan.ranks_size(), 2);
  EXPECT_EQ(cluster.job("a").plan.digest(), "plan of 2 ranks");
}

TEST(Growth, AJobThatEndedWithImagesMayBeSubmittedForTheirLayoutButForNoOther) {
  TestCluster cluster;
  EndWithAnImage(cluster);
  EXPECT_EQ(ResumeTo(cluster, 200, 3).code(), StatusCode::kFailedPrecondition);
  EXPECT_TRUE(cluster.job("a").smaller);
  ASSERT_TRUE(ResumeTo(cluster, 200, 1).ok());
  EXPECT_FALSE(cluster.job("a").smaller);
  EXPECT_EQ(cluster.job("a").plan.ranks_size(), 1);
  EXPECT_EQ(cluster.Last("worker-0", Kind::kStartRanks)->start_ranks().restore_images().step(),
            100);
}

TEST(Growth, DevicesThatAreGoneInTheTurnInWhichItWouldBeginAreMissed) {
  TestCluster cluster;
  RunShrunkJob(cluster);
  cluster.Connect("worker-1");
  cluster.Report("a", 4);
  PassWithHeartbeats(cluster, kGrowthPatience - std::chrono::seconds(2));
  ASSERT_TRUE(cluster.job("a").grow_time);
  cluster.Pass(std::chrono::milliseconds(1500));
  cluster.Report("a", 5);
  // The lease of worker-1 and the patience have both expired when the coordinator next runs.
  cluster.StandStill(std::chrono::seconds(2));
  EXPECT_THAT(cluster.Events("a"), Not(Contains("GROWING")));
  EXPECT_EQ(StopAttempt(cluster.job("a").record), 0);
}

TEST(Growth, DevicesThatAnEarlierJobWaitsForAreLeftToIt) {
  TestCluster cluster;
  RunShrunkJob(cluster);
  v1::JobSpec urgent = TestSpec("b", 2, 100);
  urgent.set_priority(5);
  cluster.Submit(urgent);
  cluster.Connect("worker-1");
  for (int time = 0; time < 2; ++time) TrainForTheGrowthPatience(cluster);
  EXPECT_EQ(RequestedStop(cluster), 0);
  CancelJobCall cancel{cluster.next_call++, {}};
  cancel.request.set_name("b");
  cluster.Do(cancel);
  TrainForTheGrowthPatience(cluster);
  EXPECT_GT(RequestedStop(cluster), 0);
}

TEST(Growth, ACatalogWithoutSmallerLayoutsLoads) {
  TestCluster cluster;
  RunShrunkJob(cluster);
  // The state left by an older coordinator: the smaller layout's spec overwrites the submitted one,
  // and there is no SmallerLayout.
  CatalogBatch older;
  v1::JobSpec spec = cluster.job("a").spec;
  spec.mutable_parallelism()->set_data_parallel_replicate_degree(1);
  older.PutSpec("a", spec);
  older.DeleteSmallerLayout("a");
  ASSERT_TRUE(WriteCatalog(older, &cluster.store()).ok());
  cluster.Restart();
  cluster.Reconnect("worker-0");
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_RUNNING);
  EXPECT_FALSE(cluster.job("a").smaller);
  EXPECT_EQ(DescribeJob(cluster.job("a"), true).submitted_layout().data_replicate(), 1);
}

}  // namespace
}  // namespace troupe
