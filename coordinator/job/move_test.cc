// Tests that jobs leave workers that drain.
#include "coordinator/job/move.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/history/receipt.h"
#include "coordinator/job/job_view.h"
#include "coordinator/machine/views.h"
#include "coordinator/state/stop.h"
#include "coordinator/test_cluster.h"

namespace troupe {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

using Kind = v1::CoordinatorMessage;

void LetSecondsPass(TestCluster& cluster, int seconds) {
  for (int second = 0; second < seconds; ++second) {
    cluster.Heartbeat();
    cluster.Pass(std::chrono::seconds(1));
  }
}

void AnnounceEnd(TestCluster& cluster, const std::string& worker, double seconds) {
  v1::Draining draining;
  draining.set_reason("SIGTERM");
  draining.set_seconds_left(seconds);
  cluster.worker(worker).draining = draining;
  v1::WorkerMessage message;
  *message.mutable_draining() = draining;
  cluster.SendFrom(worker, message);
}

void EndWorker(TestCluster& cluster, const std::string& worker) {
  v1::WorkerMessage message;
  message.mutable_goodbye();
  cluster.SendFrom(worker, message);
  cluster.worker(worker).session = 0;
}

Reply DrainByOperator(TestCluster& cluster, const std::string& worker,
                      const std::string& reason = "") {
  DrainWorkerCall call{cluster.next_call++, {}};
  call.request.set_name(worker);
  call.request.set_reason(reason);
  return cluster.Do(call).replies.at(0);
}

Reply Undrain(TestCluster& cluster, const std::string& worker) {
  UndrainWorkerCall call{cluster.next_call++, {}};
  call.request.set_name(worker);
  return cluster.Do(call).replies.at(0);
}

v1::WorkerStatus StatusOfWorker(TestCluster& cluster, const std::string& worker) {
  v1::ListWorkersResponse response;
  EXPECT_TRUE(ViewWorkers(cluster.state(), {}, {}, &response).ok());
  for (const v1::WorkerStatus& status : response.workers()) {
    if (status.name() == worker) return status;
  }
  return {};
}

// The attempt after which the ranks on `worker` stop; 0: none was requested.
int64_t MoveAttempt(TestCluster& cluster, const std::string& worker = "worker-0") {
  const v1::CoordinatorMessage* const asked = cluster.Last(worker, Kind::kCheckpointRequest);
  if (asked == nullptr || !asked->checkpoint_request().intent().then_stop()) return 0;
  return asked->checkpoint_request().intent().attempt();
}

std::vector<std::string> WorkersWithRanks(const Job& job) {
  std::vector<std::string> workers;
  for (const v1::RankPlacement& placement : job.plan.ranks()) workers.push_back(placement.worker());
  return workers;
}

// The group epochs of the stored steps, in order.
std::vector<uint64_t> EpochsOfSteps(TestCluster& cluster) {
  std::vector<uint64_t> epochs;
  const auto rows = ReadHistory(cluster.store(), "a", 0, 1000);
  for (const v1::StepEvent& row : *rows) epochs.push_back(row.group_epoch());
  return epochs;
}

// The ranks on worker-0 and worker-1 commit the step after `step` and stop.
void CommitAndStop(TestCluster& cluster, int64_t step) {
  const int64_t attempt = MoveAttempt(cluster);
  ASSERT_GT(attempt, 0);
  const uint64_t epoch = cluster.job("a").record.group_epoch();
  cluster.Report("a", step);
  cluster.Commit("a", attempt, step);
  cluster.StopRanks("a", epoch, {"worker-0", "worker-1"});
}

TEST(Move, AJobGoesOnAtTheSpareWorkerWithoutARepeatedStep) {
  TestCluster cluster;
  RunJob(cluster, 2, 3);
  ReportUpTo(cluster, 1, 3);
  AnnounceEnd(cluster, "worker-1", 110);
  EXPECT_EQ(StatusOfWorker(cluster, "worker-1").state(), "DRAINING");
  EXPECT_EQ(StatusOfWorker(cluster, "worker-1").drain().reason(), "SIGTERM");
  EXPECT_FALSE(StatusOfWorker(cluster, "worker-1").drain().by_operator());
  CommitAndStop(cluster, 4);
  ASSERT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_STARTING);
  EXPECT_THAT(WorkersWithRanks(cluster.job("a")), ElementsAre("worker-0", "worker-2"));
  EndWorker(cluster, "worker-1");
  cluster.StartRanks("a", 4);
  ReportUpTo(cluster, 5, 6);
  LetSecondsPass(cluster, 1);
  const Job& job = cluster.job("a");
  EXPECT_EQ(job.record.state(), v1::JOB_STATE_RUNNING);
  EXPECT_EQ(job.record.restarts(), 0);
  EXPECT_EQ(MakeReceipt(job).restarts(), 0);
  EXPECT_EQ(MakeReceipt(job).moves(), 1);
  EXPECT_EQ(DescribeJob(job, false).moves(), 1);
  EXPECT_THAT(EpochsOfSteps(cluster), ElementsAre(1, 1, 1, 1, 2, 2)) << "each step once";
  EXPECT_THAT(cluster.Events("a"), Contains("MOVED"));
}

// Returns the reason of the move that users see; empty: the job does not move.
std::string ShownMove(TestCluster& cluster) {
  return DescribeJob(cluster.job("a"), false).moving();
}

TEST(Move, UsersSeeThatAJobMovesAndWhyUntilItRunsAgain) {
  TestCluster cluster;
  RunJob(cluster, 2, 2);
  ReportUpTo(cluster, 1, 3);
  EXPECT_EQ(ShownMove(cluster), "");
  AnnounceEnd(cluster, "worker-1", 110);
  EXPECT_EQ(ShownMove(cluster), "leaves worker-1, which is draining (SIGTERM)");
  CommitAndStop(cluster, 4);
  EXPECT_EQ(ShownState(cluster.job("a")), v1::JOB_STATE_RECOVERING);
  EXPECT_EQ(ShownMove(cluster), "leaves worker-1, which is draining (SIGTERM), after step 4");
  EndWorker(cluster, "worker-1");
  cluster.Connect("worker-2");
  LetSecondsPass(cluster, 3);
  EXPECT_EQ(ShownState(cluster.job("a")), v1::JOB_STATE_STARTING);
  EXPECT_THAT(ShownMove(cluster), HasSubstr("after step 4"));
  cluster.StartRanks("a", 4);
  EXPECT_EQ(ShownMove(cluster), "");
  EndWorker(cluster, "worker-2");
  EXPECT_EQ(ShownState(cluster.job("a")), v1::JOB_STATE_RECOVERING);
  EXPECT_EQ(ShownMove(cluster), "") << "a lost worker is no move";
}

TEST(Move, AJobWhoseFirstGroupMovesBeforeItsFirstStepIsShownAsMovingToo) {
  TestCluster cluster;
  cluster.Connect("worker-0");
  cluster.Submit(TestSpec("a", 1, 100));
  AnnounceEnd(cluster, "worker-0", 110);
  EXPECT_EQ(ShownState(cluster.job("a")), v1::JOB_STATE_RECOVERING);
  EXPECT_EQ(ShownMove(cluster), "leaves worker-0, which is draining (SIGTERM)");
}

TEST(Move, ASecondRequestChangesNothing) {
  TestCluster cluster;
  RunJob(cluster, 2, 3);
  ReportUpTo(cluster, 1, 3);
  AnnounceEnd(cluster, "worker-1", 110);
  const int64_t attempt = MoveAttempt(cluster);
  AnnounceEnd(cluster, "worker-1", 100);
  DrainByOperator(cluster, "worker-1", "a new kernel");
  DrainByOperator(cluster, "worker-1", "a new kernel");
  EXPECT_EQ(MoveAttempt(cluster), attempt);
  EXPECT_EQ(cluster.Count("worker-0", Kind::kCheckpointRequest), 1);
  EXPECT_EQ(StatusOfWorker(cluster, "worker-1").drain().reason(), "SIGTERM");
  EXPECT_TRUE(StatusOfWorker(cluster, "worker-1").drain().by_operator());
  CommitAndStop(cluster, 4);
  EXPECT_EQ(cluster.job("a").record.moves(), 1);
}

TEST(Move, WithTooLittleTimeTheJobTrainsOnAndRecoversWhenTheWorkerEnds) {
  TestCluster cluster;
  RunJob(cluster, 2, 3);
  ReportUpTo(cluster, 1, 10);  // 0.5 s each
  cluster.Commit("a", AttemptOf(cluster, 10), 10);
  ReportUpTo(cluster, 11, 12);
  AnnounceEnd(cluster, "worker-1", 0.9);
  EXPECT_EQ(MoveAttempt(cluster), 0);
  cluster.Report("a", 13);
  EndWorker(cluster, "worker-1");
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_RECOVERING);
  cluster.StopRanks("a", 1, {"worker-0"});
  LetSecondsPass(cluster, 3);
  EXPECT_THAT(WorkersWithRanks(cluster.job("a")), ElementsAre("worker-0", "worker-2"));
  cluster.StartRanks("a", 10);
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_RUNNING);
  EXPECT_EQ(cluster.job("a").record.restarts(), 1);
  EXPECT_EQ(cluster.job("a").record.moves(), 0);
}

TEST(Move, AWorkerThatEndsBeforeTheCommitLeadsToARecovery) {
  TestCluster cluster;
  RunJob(cluster, 2, 3);
  ReportUpTo(cluster, 1, 3);
  AnnounceEnd(cluster, "worker-1", 110);
  ASSERT_GT(MoveAttempt(cluster), 0);
  cluster.Report("a", 4);
  cluster.Vote("a", MoveAttempt(cluster), 4, 0);
  EndWorker(cluster, "worker-1");
  EXPECT_THAT(cluster.Events("a"), Contains("MOVE_CALLED_OFF"));
  EXPECT_EQ(StopAttempt(cluster.job("a").record), 0);
  cluster.StopRanks("a", 1, {"worker-0"});
  LetSecondsPass(cluster, 3);
  cluster.StartRanks("a");
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_RUNNING);
  EXPECT_EQ(cluster.job("a").record.moves(), 0);
  EXPECT_THAT(cluster.Events("a"), Not(Contains("MOVED")));
}

TEST(Move, AJobWithoutAFolderTrainsUntilItsWorkerEnds) {
  TestCluster cluster;
  for (const char* const name : {"worker-0", "worker-1"}) cluster.Connect(name);
  v1::JobSpec spec = TestSpec("a", 1, 100);
  spec.mutable_checkpoint()->set_folder("");
  cluster.Submit(spec);
  cluster.StartRanks("a");
  AnnounceEnd(cluster, "worker-0", 110);
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_RUNNING);
  EXPECT_EQ(cluster.Count("worker-0", Kind::kStopRanks), 0);
  EndWorker(cluster, "worker-0");
  LetSecondsPass(cluster, 3);
  EXPECT_THAT(WorkersWithRanks(cluster.job("a")), ElementsAre("worker-1"));
}

TEST(Move, AGroupThatHasNotRunYetIsPlacedAgainAtOnce) {
  TestCluster cluster;
  cluster.Connect("worker-0");
  cluster.Connect("worker-1");
  cluster.Submit(TestSpec("a", 1, 100));
  ASSERT_THAT(WorkersWithRanks(cluster.job("a")), ElementsAre("worker-0"));
  AnnounceEnd(cluster, "worker-0", 110);
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_STARTING);
  EXPECT_THAT(WorkersWithRanks(cluster.job("a")), ElementsAre("worker-1"));
  EXPECT_EQ(cluster.Count("worker-0", Kind::kStopRanks), 1);
  EXPECT_EQ(cluster.job("a").record.restarts(), 0);
  EXPECT_EQ(cluster.job("a").record.moves(), 0) << "there was no commit";
  cluster.StartRanks("a");
  EXPECT_THAT(cluster.Events("a"), ElementsAre("QUEUED", "MOVING", "STARTED"));
}

TEST(Move, NothingIsPlacedOnAWorkerThatDrainsWhenItConnects) {
  TestCluster cluster;
  TestWorker& worker = cluster.Connect("worker-0");
  cluster.Disconnect("worker-0");
  worker.draining.emplace().set_seconds_left(100);
  cluster.Submit(TestSpec("a", 1, 100));
  cluster.Reconnect("worker-0");
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_QUEUED);
  cluster.Disconnect("worker-0");
  cluster.Connect("worker-0");
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_STARTING) << "a new life does not drain";
}

TEST(Move, ARestartOfTheCoordinatorInTheMiddleLosesNothing) {
  for (const bool is_requested : {false, true}) {
    TestCluster cluster;
    RunJob(cluster, 2, 3);
    ReportUpTo(cluster, 1, 3);
    if (is_requested) AnnounceEnd(cluster, "worker-1", 110);
    cluster.Restart();
    // The worker was asked to stop while there was no coordinator, or states it again.
    cluster.worker("worker-1").draining.emplace().set_seconds_left(100);
    for (const char* const name : {"worker-0", "worker-1", "worker-2"}) cluster.Reconnect(name);
    ReportUpTo(cluster, 1, 3);
    CommitAndStop(cluster, 4);
    EXPECT_THAT(WorkersWithRanks(cluster.job("a")), ElementsAre("worker-0", "worker-2"));
    cluster.Restart();
    for (const char* const name : {"worker-0", "worker-1", "worker-2"}) cluster.Reconnect(name);
    EXPECT_THAT(WorkersWithRanks(cluster.job("a")), Not(Contains("worker-1")));
    EXPECT_EQ(cluster.job("a").record.moves(), 1);
  }
}

TEST(Move, WhenEveryWorkerDrainsTheJobWaitsInTheQueueWithACheckpoint) {
  TestCluster cluster;
  RunJob(cluster, 2, 2);
  ReportUpTo(cluster, 1, 3);
  AnnounceEnd(cluster, "worker-0", 110);
  AnnounceEnd(cluster, "worker-1", 110);
  const int64_t attempt = MoveAttempt(cluster);
  CommitAndStop(cluster, 4);
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_RECOVERING);
  EndWorker(cluster, "worker-0");
  EndWorker(cluster, "worker-1");
  cluster.Pass(std::chrono::seconds(600));
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_RECOVERING);
  EXPECT_EQ(cluster.job("a").record.restarts(), 0);
  cluster.Connect("worker-8");
  cluster.Connect("worker-9");
  ASSERT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_STARTING);
  EXPECT_THAT(cluster.Last("worker-8", Kind::kStartRanks)->start_ranks().restore_path(),
              HasSubstr(fmt::format("attempt-{}", attempt)));
}

TEST(Move, WithTooFewDevicesLeftTheJobGoesOnSmallerIfItMay) {
  TestCluster cluster;
  cluster.Connect("worker-0");
  cluster.Connect("worker-1");
  v1::JobSpec spec = TestSpec("a", 2, 100);
  spec.mutable_fault_tolerance()->set_allow_layout_change(true);
  cluster.Submit(spec);
  cluster.StartRanks("a");
  ReportUpTo(cluster, 1, 3);
  AnnounceEnd(cluster, "worker-1", 110);
  CommitAndStop(cluster, 4);
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_RECOVERING) << "for a while it waits";
  LetSecondsPass(cluster, 8);
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_STARTING);
  EXPECT_THAT(WorkersWithRanks(cluster.job("a")), ElementsAre("worker-0"));
}

TEST(Move, ADrainDuringACommitIsFollowedByACommitOfItsOwn) {
  TestCluster cluster;
  RunJob(cluster, 2, 3);
  ReportUpTo(cluster, 1, 10);
  const int64_t due = AttemptOf(cluster, 10);
  cluster.Vote("a", due, 10, 0);
  AnnounceEnd(cluster, "worker-1", 110);
  ASSERT_GT(MoveAttempt(cluster), due);
  cluster.Vote("a", due, 10, 1);
  cluster.WriteManifest("a", due);
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_RUNNING) << "its ranks train on";
  CommitAndStop(cluster, 11);
  EXPECT_THAT(WorkersWithRanks(cluster.job("a")), ElementsAre("worker-0", "worker-2"));
  EXPECT_EQ(cluster.job("a").record.restarts(), 0);
}

TEST(Move, ADrainingWorkerThatIsLostLeadsToARecovery) {
  TestCluster cluster;
  RunJob(cluster, 2, 3);
  ReportUpTo(cluster, 1, 3);
  AnnounceEnd(cluster, "worker-1", 110);
  cluster.Disconnect("worker-1");
  LetSecondsPass(cluster, 4);
  cluster.StopRanks("a", 1, {"worker-0"});
  LetSecondsPass(cluster, 3);
  EXPECT_THAT(WorkersWithRanks(cluster.job("a")), ElementsAre("worker-0", "worker-2"));
  EXPECT_EQ(StatusOfWorker(cluster, "worker-1").state(), "LOST");
}

TEST(Move, ACancelWithACheckpointEndsAJobThatMovesWhereItStops) {
  TestCluster cluster;
  RunJob(cluster, 2, 3);
  ReportUpTo(cluster, 1, 3);
  AnnounceEnd(cluster, "worker-1", 110);
  CancelJobCall cancel{cluster.next_call++, {}};
  cancel.request.set_name("a");
  cancel.request.set_checkpoint(true);
  cluster.Do(cancel);
  CommitAndStop(cluster, 4);
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_CANCELLED);
  EXPECT_EQ(cluster.job("a").record.moves(), 0);
}

TEST(Move, OnlyAJobThatIsCancelledCountsAsBeingCancelled) {
  TestCluster cluster;
  RunJob(cluster, 2, 3);
  ReportUpTo(cluster, 1, 3);
  AnnounceEnd(cluster, "worker-1", 110);
  ASSERT_NE(StopAttempt(cluster.job("a").record), 0);
  EXPECT_FALSE(IsBeingCancelled(cluster.job("a").record)) << "it moves";
  CancelJobCall cancel{cluster.next_call++, {}};
  cancel.request.set_name("a");
  cancel.request.set_checkpoint(true);
  cluster.Do(cancel);
  EXPECT_TRUE(IsBeingCancelled(cluster.job("a").record));
}

TEST(Move, AJobWhoseNewWorkerDrainsBeforeItRunsThereHasStillMoved) {
  TestCluster cluster;
  RunJob(cluster, 2, 5);
  ReportUpTo(cluster, 1, 3);
  AnnounceEnd(cluster, "worker-1", 110);
  CommitAndStop(cluster, 4);
  AnnounceEnd(cluster, WorkersWithRanks(cluster.job("a")).back(), 110);
  ASSERT_EQ(cluster.job("a").record.group_epoch(), 3u);
  cluster.StartRanks("a", 4);
  EXPECT_EQ(cluster.Events("a").back(), "MOVED");
  EXPECT_EQ(cluster.job("a").record.moves(), 1);
  EXPECT_EQ(cluster.job("a").record.restarts(), 0);
}

TEST(Move, AJobThatIsCancelledBetweenItsGroupsHasNotMovedWhenItIsResumed) {
  TestCluster cluster;
  RunJob(cluster, 2, 2);
  ReportUpTo(cluster, 1, 3);
  AnnounceEnd(cluster, "worker-1", 110);
  CommitAndStop(cluster, 4);
  ASSERT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_RECOVERING);
  CancelJobCall cancel{cluster.next_call++, {}};
  cancel.request.set_name("a");
  cluster.Do(cancel);
  ASSERT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_CANCELLED);
  cluster.Connect("worker-2");
  ResumeJobCall resume{cluster.next_call++, {}};
  resume.request.set_name("a");
  cluster.Do(resume);
  ASSERT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_STARTING);
  cluster.StartRanks("a", 4);
  EXPECT_EQ(cluster.Events("a").back(), "STARTED");
}

TEST(Move, AWorkerThatAnOperatorDrainsStaysAndIsReturned) {
  TestCluster cluster;
  RunJob(cluster, 2, 3);
  ReportUpTo(cluster, 1, 3);
  const Reply drained = DrainByOperator(cluster, "worker-1", "a new kernel");
  ASSERT_TRUE(drained.status.ok());
  EXPECT_EQ(std::get<v1::WorkerStatus>(drained.value).state(), "DRAINING");
  CommitAndStop(cluster, 4);
  EXPECT_THAT(WorkersWithRanks(cluster.job("a")), ElementsAre("worker-0", "worker-2"));
  EXPECT_EQ(StatusOfWorker(cluster, "worker-1").drain().reason(), "a new kernel");
  const Reply returned = Undrain(cluster, "worker-1");
  EXPECT_EQ(std::get<v1::WorkerStatus>(returned.value).state(), "READY");
  EXPECT_TRUE(Undrain(cluster, "worker-1").status.ok());
  cluster.Submit(TestSpec("b", 1, 100));
  EXPECT_THAT(WorkersWithRanks(cluster.job("b")), ElementsAre("worker-1"));
}

TEST(Move, ALostWorkerShowsNoEndOfItsOwn) {
  TestCluster cluster;
  cluster.Connect("worker-0");
  AnnounceEnd(cluster, "worker-0", 110);
  EndWorker(cluster, "worker-0");
  EXPECT_EQ(StatusOfWorker(cluster, "worker-0").state(), "LOST");
  EXPECT_FALSE(StatusOfWorker(cluster, "worker-0").has_drain());
}

TEST(Move, AnEndThatIsAnnouncedTwiceIsNotedOnce) {
  TestCluster cluster;
  cluster.Connect("worker-0");
  v1::WorkerMessage message;
  message.mutable_draining()->set_seconds_left(110);
  EXPECT_EQ(cluster.SendFrom("worker-0", message).notes.size(), 1u);
  EXPECT_EQ(cluster.SendFrom("worker-0", message).notes.size(), 0u);
}

TEST(Move, WhereNothingPressesAJobThatCannotSaveDoesNotStopUntilItCan) {
  TestCluster cluster;
  RunJob(cluster, 2, 3);
  ReportUpTo(cluster, 1, 10);
  v1::WorkerMessage failed;
  failed.mutable_shard_failed()->set_job("a");
  failed.mutable_shard_failed()->set_group_epoch(1);
  failed.mutable_shard_failed()->set_attempt(AttemptOf(cluster, 10));
  failed.mutable_shard_failed()->set_reason("No space left on device");
  cluster.SendFrom("worker-0", failed);
  DrainByOperator(cluster, "worker-1");
  EXPECT_EQ(MoveAttempt(cluster), 0);
  EXPECT_THAT(cluster.job("a").group->stay, HasSubstr("its last checkpoint failed"));
  ReportUpTo(cluster, 11, 20);
  cluster.Commit("a", AttemptOf(cluster, 20), 20);
  EXPECT_GT(MoveAttempt(cluster), 0);
}

TEST(Move, AJobThatDoesNotLeaveAWorkerThatDrainsStatesWhy) {
  TestCluster cluster;
  cluster.Connect("worker-0");
  cluster.Connect("worker-1");
  v1::JobSpec spec = TestSpec("a", 1, 100);
  spec.mutable_checkpoint()->clear_folder();
  cluster.Submit(spec);
  cluster.StartRanks("a");
  const std::string worker = cluster.job("a").last_group.ranks(0).worker();
  const Reply drained = DrainByOperator(cluster, worker, "a new kernel");
  const auto& drain = std::get<v1::WorkerStatus>(drained.value).drain();
  ASSERT_EQ(drain.staying_jobs_size(), 1) << "the reply states it";
  EXPECT_EQ(drain.staying_jobs(0).name(), "jobs/a");
  EXPECT_THAT(drain.staying_jobs(0).reason(), HasSubstr("it has no checkpoint.folder"));
  LetSecondsPass(cluster, 3);
  cluster.Connect("worker-2");
  EXPECT_EQ(std::ranges::count(cluster.Events("a"), "NOT_MOVING"), 1) << "not again and again";
  EXPECT_EQ(cluster.job("a").group->stay,
            fmt::format("stays on {}, which is draining (by an operator: a new kernel): it has no "
                        "checkpoint.folder, so it trains there until it is cancelled or the worker "
                        "ends",
                        worker));
  AnnounceEnd(cluster, worker, 110);
  EXPECT_EQ(std::ranges::count(cluster.Events("a"), "NOT_MOVING"), 2) << "for another reason";
}

TEST(Move, AJobWhoseTimeIsTooShortStatesThatItStays) {
  TestCluster cluster;
  RunJob(cluster, 1, 2);
  ReportUpTo(cluster, 1, 5);
  Job& job = cluster.state().jobs.at("a");
  job.step_seconds.assign(5, 60);
  const std::string worker = cluster.job("a").last_group.ranks(0).worker();
  AnnounceEnd(cluster, worker, 30);
  EXPECT_EQ(MoveAttempt(cluster), 0);
  EXPECT_THAT(job.group->stay, HasSubstr("do not fit into the time that is left"));
  const v1::WorkerStatus staying = StatusOfWorker(cluster, worker);
  ASSERT_EQ(staying.drain().staying_jobs_size(), 1);
  EXPECT_EQ(staying.drain().staying_jobs(0).name(), "jobs/a");
  EXPECT_EQ(staying.drain().staying_jobs(0).reason(),
            "two steps and a commit do not fit into the time that is left");
  // Its steps are shorter than it seemed.
  job.step_seconds.assign(5, 1);
  cluster.Connect("worker-2");
  EXPECT_GT(MoveAttempt(cluster), 0);
  EXPECT_EQ(StatusOfWorker(cluster, worker).drain().staying_jobs_size(), 0);
}

TEST(Move, TheOrderOfAnOperatorOutlivesTheWorkerAndTheCoordinator) {
  TestCluster cluster;
  cluster.Connect("worker-0");
  DrainByOperator(cluster, "worker-0");
  cluster.Disconnect("worker-0");
  cluster.Pass(std::chrono::hours(1));
  EXPECT_FALSE(cluster.state().fleet.workers.contains("worker-0")) << "it is forgotten";
  cluster.Restart();
  EXPECT_EQ(StatusOfWorker(cluster, "worker-0").state(), "LOST");
  EXPECT_TRUE(DrainByOperator(cluster, "worker-0").status.ok()) << "still known";
  cluster.Submit(TestSpec("a", 1, 100));
  cluster.Connect("worker-0");
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_QUEUED);
  Undrain(cluster, "worker-0");
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_STARTING);
  cluster.Restart();
  EXPECT_FALSE(StatusOfWorker(cluster, "worker-0").has_drain());
}

// The ranks of job `a`, which stop after step 4, cannot save it, and leave images.
void LeaveImages(TestCluster& cluster) {
  cluster.Report("a", 4);
  const uint64_t epoch = cluster.job("a").record.group_epoch();
  for (int second = 0; second < 1000; ++second) {
    v1::WorkerMessage failed;
    failed.mutable_shard_failed()->set_job("a");
    failed.mutable_shard_failed()->set_group_epoch(epoch);
    failed.mutable_shard_failed()->set_attempt(cluster.job("a").record.last_attempt());
    failed.mutable_shard_failed()->set_reason("no space left");
    cluster.SendFrom("worker-0", failed);
    LetSecondsPass(cluster, 1);
    if (cluster.Last("worker-0", Kind::kSaveImages) != nullptr) break;
  }
  for (int rank = 0; rank < 2; ++rank) {
    v1::WorkerMessage message;
    v1::ImageSaved& saved = *message.mutable_image_saved();
    saved.set_job("a");
    saved.set_group_epoch(epoch);
    saved.set_rank(rank);
    saved.set_step(4);
    saved.set_path(fmt::format("/data-{}/images/a/step-4", rank));
    saved.set_digest("sha256:0");
    cluster.SendFrom(fmt::format("worker-{}", rank), message);
  }
  cluster.StopRanks("a", epoch, {"worker-0", "worker-1"});
}

TEST(Move, AJobWhoseImagesAreOnADrainedWorkerWaitsForItForALimitedTime) {
  TestCluster cluster;
  RunJob(cluster, 2, 3);
  ReportUpTo(cluster, 1, 3);
  DrainByOperator(cluster, "worker-1");
  ASSERT_GT(MoveAttempt(cluster), 0);
  LeaveImages(cluster);
  ASSERT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_RECOVERING);
  LetSecondsPass(cluster, 350);
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_RECOVERING);
  LetSecondsPass(cluster, 20);
  ASSERT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_FAILED);
  const v1::Failure& failure = cluster.job("a").record.failure();
  EXPECT_EQ(failure.cause(), "BAD_IMAGE");
  EXPECT_THAT(failure.message(), HasSubstr("worker-1 (draining)"));
  EXPECT_THAT(failure.message(), HasSubstr("--discard-images"));
  EXPECT_EQ(cluster.Count("worker-1", Kind::kDeleteImages), 0) << "they are kept";
  Undrain(cluster, "worker-1");
  ResumeJobCall resume{cluster.next_call++, {}};
  resume.request.set_name("a");
  ASSERT_TRUE(cluster.Do(resume).replies.at(0).status.ok());
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_STARTING);
  EXPECT_EQ(cluster.Last("worker-1", Kind::kStartRanks)->start_ranks().restore_images().step(), 4);
}

TEST(Move, AJobWhoseImagesAreOnADrainedWorkerGoesOnWhenItIsReturnedInTime) {
  TestCluster cluster;
  RunJob(cluster, 2, 3);
  ReportUpTo(cluster, 1, 3);
  DrainByOperator(cluster, "worker-1");
  LeaveImages(cluster);
  LetSecondsPass(cluster, 200);
  cluster.Restart();
  for (const char* const worker : {"worker-0", "worker-1", "worker-2"}) cluster.Reconnect(worker);
  LetSecondsPass(cluster, 200);
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_RECOVERING) << "the time counts anew";
  Undrain(cluster, "worker-1");
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_STARTING);
}

TEST(Move, AnOrderForAWorkerThatDoesNotReturnEnds) {
  static constexpr std::chrono::nanoseconds kDay = std::chrono::hours(24);
  const auto pass_days = [](TestCluster& cluster, int days) {
    cluster.wall_ns += days * kDay.count();
    cluster.Pass(std::chrono::minutes(2));
  };
  TestCluster cluster;
  cluster.wall_ns = 5;
  for (const char* const worker : {"worker-0", "worker-1"}) {
    cluster.Connect(worker);
    DrainByOperator(cluster, worker, "a new kernel");
    cluster.Disconnect(worker);
  }
  EXPECT_EQ(StatusOfWorker(cluster, "worker-0").drain().since_wall_time_ns(), 5);
  EXPECT_EQ(StatusOfWorker(cluster, "worker-0").drain().order_end_wall_time_ns(), 0);
  cluster.Pass(std::chrono::hours(1));
  ASSERT_TRUE(cluster.state().fleet.workers.empty()) << "both are forgotten";
  EXPECT_EQ(StatusOfWorker(cluster, "worker-0").drain().order_end_wall_time_ns(),
            5 + 7 * kDay.count());
  pass_days(cluster, 6);
  cluster.Restart();
  cluster.Pass(std::chrono::minutes(2));
  cluster.Connect("worker-1");
  cluster.Pass(std::chrono::minutes(2));
  pass_days(cluster, 1);
  EXPECT_FALSE(cluster.state().fleet.drains.contains("worker-0"));
  EXPECT_TRUE(cluster.state().fleet.drains.contains("worker-1")) << "it has returned";
  cluster.Restart();
  EXPECT_EQ(cluster.state().fleet.drains.size(), 1u);
}

TEST(Move, OrdersForMoreWorkersThanTheLimitAreRefused) {
  TestCluster cluster;
  cluster.Connect("worker-0");
  cluster.Connect("worker-1");
  DrainByOperator(cluster, "worker-1");
  for (int i = 1; i < 10'000; ++i) {
    const std::string name = fmt::format("gone-{}", i);
    cluster.state().fleet.drains[name].set_worker(name);
  }
  EXPECT_EQ(DrainByOperator(cluster, "worker-0").status.code(), StatusCode::kResourceExhausted);
  EXPECT_TRUE(DrainByOperator(cluster, "worker-1").status.ok());
  Undrain(cluster, "gone-1");
  EXPECT_TRUE(DrainByOperator(cluster, "worker-0").status.ok());
}

TEST(Move, ARepeatedOrderWithoutAReasonKeepsTheEarlierOne) {
  TestCluster cluster;
  cluster.Connect("worker-0");
  DrainByOperator(cluster, "worker-0", "a new kernel");
  DrainByOperator(cluster, "worker-0");
  EXPECT_EQ(StatusOfWorker(cluster, "worker-0").drain().reason(), "a new kernel");
  DrainByOperator(cluster, "worker-0", "a new disk");
  cluster.Restart();
  EXPECT_EQ(StatusOfWorker(cluster, "worker-0").drain().reason(), "a new disk");
}

TEST(Move, AWorkerThatTookItsLeaveIsListedWithoutJobs) {
  TestCluster cluster;
  RunJob(cluster, 2, 2);
  ReportUpTo(cluster, 1, 3);
  EXPECT_EQ(StatusOfWorker(cluster, "worker-1").jobs_size(), 1);
  EndWorker(cluster, "worker-1");
  EXPECT_TRUE(cluster.state().fleet.leases.contains({"worker-1", 0})) << "until it is forgotten";
  EXPECT_EQ(StatusOfWorker(cluster, "worker-1").state(), "LOST");
  EXPECT_EQ(StatusOfWorker(cluster, "worker-1").jobs_size(), 0);
  EXPECT_EQ(StatusOfWorker(cluster, "worker-0").jobs_size(), 1) << "its rank still ends";
}

TEST(Move, AReasonThatIsNotOneLineIsRefused) {
  TestCluster cluster;
  cluster.Connect("worker-0");
  for (const std::string& reason : {std::string("a\nworker-9  READY"), std::string("\x1b[31mred"),
                                    std::string("\x7f"), std::string("a\0b", 3)}) {
    const Reply refused = DrainByOperator(cluster, "worker-0", reason);
    EXPECT_EQ(refused.status.code(), StatusCode::kInvalidArgument) << reason;
    EXPECT_THAT(Message(refused.status), HasSubstr("must be one line of text"));
  }
  EXPECT_TRUE(cluster.state().fleet.drains.empty());
  EXPECT_TRUE(DrainByOperator(cluster, "worker-0", "für ein neues Netzteil").status.ok());
}

TEST(Move, ANameThatIsNotKnownIsNotFound) {
  TestCluster cluster;
  EXPECT_EQ(DrainByOperator(cluster, "worker-7").status.code(), StatusCode::kNotFound);
  EXPECT_EQ(Undrain(cluster, "worker-7").status.code(), StatusCode::kNotFound);
  EXPECT_TRUE(cluster.state().fleet.drains.empty());
  cluster.Connect("worker-7");
  EXPECT_EQ(DrainByOperator(cluster, "worker-7", std::string(257, 'x')).status.code(),
            StatusCode::kInvalidArgument);
  EXPECT_TRUE(cluster.state().fleet.drains.empty());
}

}  // namespace
}  // namespace troupe
