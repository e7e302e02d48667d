// Tests checkpoint attempts that go wrong: full disks, lost messages, concurrent requests, slow
// ranks, absent workers.
#include "coordinator/job/attempts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/state/stop.h"
#include "coordinator/test_cluster.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using Kind = v1::CoordinatorMessage;

// All ranks report, which proves that none is behind.
void AllReportUpTo(TestCluster& cluster, int64_t from, int64_t to) {
  for (int64_t step = from; step <= to; ++step) {
    for (int rank = 0; rank < cluster.job("a").plan.ranks_size(); ++rank)
      cluster.Report("a", step, rank);
  }
}

Effects Fail(TestCluster& cluster, int64_t attempt, int32_t rank = 0) {
  v1::WorkerMessage failed;
  failed.mutable_shard_failed()->set_job("a");
  failed.mutable_shard_failed()->set_group_epoch(cluster.job("a").record.group_epoch());
  failed.mutable_shard_failed()->set_rank(rank);
  failed.mutable_shard_failed()->set_attempt(attempt);
  failed.mutable_shard_failed()->set_reason("No space left on device");
  return cluster.SendFrom(cluster.job("a").last_group.ranks(rank).worker(), failed);
}

void Wait(TestCluster& cluster, int seconds) {
  for (int second = 0; second < seconds; ++second) {
    cluster.Heartbeat();
    cluster.Pass(std::chrono::seconds(1));
  }
}

CallId Ask(TestCluster& cluster) {
  CreateCheckpointCall call{cluster.next_call++, {}};
  call.request.set_job("a");
  cluster.Do(call);
  return call.call;
}

CallId CancelWithCheckpoint(TestCluster& cluster) {
  CancelJobCall call{cluster.next_call++, {}};
  call.request.set_name("a");
  call.request.set_checkpoint(true);
  cluster.Do(call);
  return call.call;
}

int64_t NewestRequest(TestCluster& cluster) {
  return cluster.Last("worker-0", Kind::kCheckpointRequest)
      ->checkpoint_request()
      .intent()
      .attempt();
}

const Reply* ReplyTo(const TestCluster& cluster, CallId call) {
  for (const Reply& reply : cluster.replies) {
    if (reply.call == call) return &reply;
  }
  return nullptr;
}

TEST(AttemptPaths, ACatalogThatBeginsAnewNamesAndDeletesNothingOfTheOldOne) {
  TestCluster before;
  before.wall_ns = 1'000'000'000;
  RunJob(before, 1, 1, 30);
  ReportUpTo(before, 1, 10);
  before.Commit("a", AttemptOf(before, 10), 10);
  const std::string committed = NewestCommit(before.job("a"))->path();

  TestCluster after;
  after.wall_ns = 2'000'000'000;
  RunJob(after, 1, 1, 30);
  ReportUpTo(after, 1, 10);
  EXPECT_NE(after.job("a").attempts.at(AttemptOf(after, 10)).record.path(), committed);
  Fail(after, AttemptOf(after, 10));
  ReportUpTo(after, 11, 20);
  after.Commit("a", AttemptOf(after, 20), 20);
  ASSERT_NE(NewestCommit(after.job("a")), nullptr);
  ASSERT_GT(after.Count("worker-0", Kind::kDeleteCheckpoint), 0);
  for (const v1::CoordinatorMessage& message : after.worker("worker-0").inbox) {
    EXPECT_NE(message.delete_checkpoint().path(), committed);
  }
}

TEST(AttemptPaths, ThatLeaveTheirRootEndTheJob) {
  for (const int64_t step : {10, 30}) {
    TestCluster cluster;
    RunJob(cluster, 2, 3, 30);
    AllReportUpTo(cluster, 1, step);
    v1::WorkerMessage failed;
    failed.mutable_shard_failed()->set_job("a");
    failed.mutable_shard_failed()->set_group_epoch(1);
    failed.mutable_shard_failed()->set_rank(1);
    failed.mutable_shard_failed()->set_attempt(AttemptOf(cluster, step));
    failed.mutable_shard_failed()->set_reason("mkdir /r/a: the path leaves /r");
    failed.mutable_shard_failed()->set_cause("PATH_OUTSIDE_ROOT");
    const std::string worker = cluster.job("a").last_group.ranks(1).worker();
    const Effects effects = cluster.SendFrom(worker, failed);
    ASSERT_THAT(effects.refused_paths, SizeIs(1));
    EXPECT_EQ(effects.refused_paths[0].worker, worker);
    ASSERT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_FAILED);
    EXPECT_EQ(cluster.job("a").record.failure().cause(), "PATH_OUTSIDE_ROOT");
    EXPECT_EQ(cluster.job("a").record.failure().rank(), 1);
    EXPECT_EQ(cluster.job("a").record.restarts(), 0);
  }
}

TEST(FinalAttempt, IsTriedAgainUntilTheStateIsSaved) {
  TestCluster cluster;
  RunJob(cluster, 2, 2, 30);
  AllReportUpTo(cluster, 1, 30);
  const int64_t first = AttemptOf(cluster, 30);
  cluster.Vote("a", first, 30, 1);
  Fail(cluster, first);
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_RUNNING);
  EXPECT_EQ(cluster.Last("worker-0", Kind::kDeleteCheckpoint)->delete_checkpoint().attempt(), first)
      << "which may be what frees the space";
  Wait(cluster, 6);
  const v1::CheckpointIntent second =
      cluster.Last("worker-1", Kind::kCheckpointRequest)->checkpoint_request().intent();
  EXPECT_EQ(second.step(), 30);
  EXPECT_TRUE(second.then_stop());
  EXPECT_GT(second.attempt(), first);
  Fail(cluster, second.attempt());
  Wait(cluster, 8);
  EXPECT_EQ(NewestRequest(cluster), second.attempt()) << "each wait is longer";
  // The total wait is far beyond the hang limit.
  Wait(cluster, 4);
  int64_t newest = NewestRequest(cluster);
  for (int i = 0; i < 4; ++i) {
    Fail(cluster, newest);
    Wait(cluster, 62);
    ASSERT_GT(NewestRequest(cluster), newest);
    newest = NewestRequest(cluster);
  }
  cluster.Commit("a", newest, 30);
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_SUCCEEDED);
  EXPECT_EQ(cluster.job("a").record.restarts(), 0);
  EXPECT_EQ(NewestCommit(cluster.job("a"))->step(), 30);
}

TEST(FinalAttempt, ThatFailedBeforeTheCoordinatorsRestartIsTriedAgainAfterIt) {
  for (const bool retried : {false, true}) {
    TestCluster cluster;
    RunJob(cluster, 1, 1, 30);
    AllReportUpTo(cluster, 1, 30);
    Fail(cluster, AttemptOf(cluster, 30));
    if (retried) Wait(cluster, 6);
    cluster.Pass(std::chrono::seconds(1));
    cluster.Restart();
    cluster.Reconnect("worker-0");
    ASSERT_EQ(cluster.job("a").group->phase, GroupPhase::kRunning);
    if (retried) {
      // The ticket repeats the intent.
      const v1::Ticket& ticket = cluster.Last("worker-0", Kind::kTicket)->ticket();
      EXPECT_EQ(ticket.intents(ticket.intents_size() - 1).attempt(), AttemptOf(cluster, 30));
    } else {
      Wait(cluster, 6);
    }
    cluster.Commit("a", AttemptOf(cluster, 30), 30);
    EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_SUCCEEDED) << retried;
  }
}

// Job `a` of two ranks has completed its steps; rank 0 has voted for the last checkpoint, rank 1 is
// still writing.
void HangInTheFinalSave(TestCluster& cluster, double final_save_seconds) {
  cluster.Connect("worker-0");
  cluster.Connect("worker-1");
  v1::JobSpec spec = TestSpec("a", 2, 30);
  spec.mutable_checkpoint()->set_final_save_seconds(final_save_seconds);
  cluster.Submit(spec);
  cluster.StartRanks("a");
  AllReportUpTo(cluster, 1, 30);
  cluster.Vote("a", AttemptOf(cluster, 30), 30, 0);
}

TEST(FinalAttempt, OfARankThatReportsNothingIsFollowedByImages) {
  TestCluster cluster;
  HangInTheFinalSave(cluster, 600);
  Wait(cluster, 590);
  EXPECT_EQ(cluster.Count("worker-1", Kind::kSaveImages), 0);
  Wait(cluster, 20);
  ASSERT_EQ(cluster.Count("worker-1", Kind::kSaveImages), 1);
  for (const int rank : {1, 0}) {
    EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_RUNNING);
    v1::WorkerMessage message;
    message.mutable_image_saved()->set_job("a");
    message.mutable_image_saved()->set_group_epoch(1);
    message.mutable_image_saved()->set_rank(rank);
    message.mutable_image_saved()->set_step(30);
    message.mutable_image_saved()->set_path("/data/images/a/step-30");
    cluster.SendFrom(fmt::format("worker-{}", rank), message);
  }
  ASSERT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_FAILED);
  EXPECT_EQ(cluster.job("a").images.images_size(), 2);
  EXPECT_EQ(cluster.job("a").record.restarts(), 0);
  const v1::Failure& failure = cluster.job("a").record.failure();
  EXPECT_EQ(failure.cause(), "FINAL_CHECKPOINT_UNWRITABLE");
  EXPECT_THAT(failure.message(), HasSubstr("no message came from rank 1 on worker-1"));
}

TEST(FinalAttempt, OfARankThatWritesNoImageEitherBreaksTheGroupAndIsPausedTheSecondTime) {
  TestCluster cluster;
  HangInTheFinalSave(cluster, 600);
  Wait(cluster, 1190);
  EXPECT_EQ(cluster.job("a").record.restarts(), 0);
  for (int i = 0; i < 30 && cluster.job("a").record.restarts() == 0; ++i) Wait(cluster, 1);
  EXPECT_EQ(cluster.job("a").record.restarts(), 1);
  EXPECT_TRUE(cluster.state().fleet.blame.contains("worker-1"));
  EXPECT_FALSE(cluster.state().fleet.blame.contains("worker-0"));
  EXPECT_EQ(cluster.job("a").delayed_recoveries, 1);
  cluster.StopRanks("a", 1, {"worker-0", "worker-1"});
  cluster.StartRanks("a");
  AllReportUpTo(cluster, 1, 30);
  for (int i = 0; i < 1220 && cluster.job("a").record.restarts() == 1; ++i) Wait(cluster, 1);
  EXPECT_EQ(cluster.job("a").record.restarts(), 2);
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_RECOVERING);
  EXPECT_EQ(cluster.job("a").delayed_recoveries, 2) << "which is how long it pauses";
}

TEST(Writing, OfARankThatReportsNothingIsAFailedWriteOfItsHostAlsoBetweenSteps) {
  TestCluster cluster;
  RunJob(cluster, 2, 2, 30);
  AllReportUpTo(cluster, 1, 10);
  const int64_t attempt = AttemptOf(cluster, 10);
  cluster.Vote("a", attempt, 10, 0);
  for (int i = 0; i < 620 && cluster.job("a").attempts.contains(attempt); ++i) Wait(cluster, 1);
  ASSERT_FALSE(cluster.job("a").attempts.contains(attempt));
  EXPECT_THAT(cluster.job("a").checkpoints.at(attempt).reason(),
              HasSubstr("no message came from rank 1 on worker-1"));
  EXPECT_TRUE(cluster.state().fleet.blame.contains("worker-1"));
  EXPECT_FALSE(cluster.state().fleet.blame.contains("worker-0"));
}

TEST(Writing, OfARankThatAnswersAnotherAttemptMeanwhileIsNoFailedWrite) {
  TestCluster cluster;
  RunJob(cluster, 2, 2, 30);
  AllReportUpTo(cluster, 1, 10);
  const int64_t due = AttemptOf(cluster, 10);
  Ask(cluster);
  const int64_t asked = NewestRequest(cluster);
  cluster.Vote("a", due, 10, 0);
  cluster.Vote("a", asked, 10, 0);
  Wait(cluster, 500);
  cluster.Vote("a", asked, 10, 1);
  for (int i = 0; i < 120 && cluster.job("a").attempts.contains(due); ++i) Wait(cluster, 1);
  ASSERT_FALSE(cluster.job("a").attempts.contains(due));
  EXPECT_FALSE(cluster.state().fleet.blame.contains("worker-1"));
}

// Rank `rank` answers the newest order of an image of step 30.
void SayImage(TestCluster& cluster, int rank, const std::string& error) {
  v1::WorkerMessage message;
  v1::ImageSaved& saved = *message.mutable_image_saved();
  saved.set_job("a");
  saved.set_group_epoch(cluster.job("a").record.group_epoch());
  saved.set_rank(rank);
  saved.set_step(30);
  saved.set_error(error);
  cluster.SendFrom(cluster.job("a").plan.ranks(rank).worker(), message);
}

TEST(FinalAttempt, OfASilentRankWhileAnotherWritesNoImageEndsTheGroupAndAtLastTheJob) {
  TestCluster cluster;
  HangInTheFinalSave(cluster, 600);
  for (uint64_t epoch = 1; epoch <= 3; ++epoch) {
    ASSERT_EQ(cluster.job("a").group->epoch, epoch);
    for (int i = 0; i < 620 && !cluster.job("a").group->image_taking; ++i) Wait(cluster, 1);
    SayImage(cluster, 0, "No space left on device");
    EXPECT_TRUE(cluster.job("a").group->image_taking) << "rank 1 may still answer";
    for (int i = 0; i < 620 && cluster.job("a").group; ++i) Wait(cluster, 1);
    ASSERT_FALSE(cluster.job("a").group) << "in epoch " << epoch;
    const v1::Failure& failure = cluster.job("a").record.last_failure();
    EXPECT_EQ(failure.cause(), "CHECKPOINT_FAILED");
    EXPECT_EQ(failure.worker(), "worker-1");
    EXPECT_THAT(failure.message(), HasSubstr("rank 1 on worker-1 did not answer"));
    EXPECT_THAT(failure.message(), HasSubstr("no image of rank 0 on worker-0: No space left"));
    if (epoch == 3) break;
    EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_RECOVERING);
    cluster.StopRanks("a", epoch, {"worker-0", "worker-1"});
    for (int i = 0; i < 10 && !cluster.job("a").group; ++i) Wait(cluster, 1);
    cluster.StartRanks("a");
    AllReportUpTo(cluster, 1, 30);
    cluster.Vote("a", cluster.job("a").record.last_attempt(), 30, 0);
  }
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_FAILED);
  EXPECT_THAT(cluster.job("a").record.failure().message(), HasSubstr("3 groups in a row"));
}

TEST(FinalAttempt, OfARankThatAnswersAfterAnotherWroteNoImageIsTriedAgainAtOnce) {
  TestCluster cluster;
  HangInTheFinalSave(cluster, 600);
  const int64_t first = AttemptOf(cluster, 30);
  for (int i = 0; i < 620 && !cluster.job("a").group->image_taking; ++i) Wait(cluster, 1);
  SayImage(cluster, 0, "No space left on device");
  cluster.Vote("a", first, 30, 1);
  EXPECT_FALSE(cluster.job("a").group->image_taking);
  Wait(cluster, 1);
  ASSERT_EQ(cluster.Count("worker-1", Kind::kCheckpointRequest), 1);
  cluster.Commit("a", NewestRequest(cluster), 30);
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_SUCCEEDED);
  EXPECT_EQ(cluster.job("a").record.restarts(), 0);
}

TEST(FinalAttempt, OfARankThatAnswersTooLateIsTriedAgainAtOnce) {
  TestCluster cluster;
  HangInTheFinalSave(cluster, 3000);
  const int64_t first = AttemptOf(cluster, 30);
  Wait(cluster, 900);
  EXPECT_FALSE(cluster.job("a").attempts.contains(first));
  EXPECT_EQ(cluster.Count("worker-1", Kind::kCheckpointRequest), 0) << "it would wait in the queue";
  cluster.Vote("a", first, 30, 1);
  Wait(cluster, 1);
  ASSERT_EQ(cluster.Count("worker-1", Kind::kCheckpointRequest), 1);
  cluster.Commit("a", NewestRequest(cluster), 30);
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_SUCCEEDED);
}

TEST(FinalAttempt, OfARankThatNeverGotThereEnds) {
  TestCluster cluster;
  cluster.Connect("worker-0");
  cluster.Connect("worker-1");
  cluster.Submit(TestSpec("a", 2, 30));
  cluster.StartRanks("a");
  AllReportUpTo(cluster, 1, 29);
  cluster.Report("a", 30, 1);
  cluster.Vote("a", AttemptOf(cluster, 30), 30, 1);
  Wait(cluster, 590);
  EXPECT_EQ(cluster.job("a").record.restarts(), 0);
  Wait(cluster, 30);
  EXPECT_EQ(cluster.job("a").record.restarts(), 1);
}

TEST(Failures, OfAFinalizedAttemptAreAnsweredSoThatNobodyVotesAgain) {
  TestCluster cluster;
  RunJob(cluster, 2, 2, 30);
  AllReportUpTo(cluster, 1, 10);
  const int64_t attempt = AttemptOf(cluster, 10);
  Fail(cluster, attempt, 0);
  cluster.worker("worker-1").inbox.clear();
  Fail(cluster, attempt, 1);
  const v1::CoordinatorMessage* const finalized =
      cluster.Last("worker-1", Kind::kCheckpointFinalized);
  ASSERT_NE(finalized, nullptr);
  EXPECT_EQ(finalized->checkpoint_finalized().attempt(), attempt);
  EXPECT_FALSE(finalized->checkpoint_finalized().committed());
}

TEST(CancelWithCheckpoint, ThatCannotSaveReportsItAndSavesLater) {
  TestCluster cluster;
  RunJob(cluster, 2, 2, 30);
  AllReportUpTo(cluster, 1, 3);
  const CallId call = CancelWithCheckpoint(cluster);
  const int64_t first = NewestRequest(cluster);
  AllReportUpTo(cluster, 4, 4);
  Fail(cluster, first, 1);
  ASSERT_NE(ReplyTo(cluster, call), nullptr);
  EXPECT_EQ(ReplyTo(cluster, call)->status.code(), StatusCode::kAborted);
  EXPECT_THAT(ToString(ReplyTo(cluster, call)->status), HasSubstr("No space left"));
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_RUNNING);
  Wait(cluster, 6);
  const v1::CheckpointIntent again =
      cluster.Last("worker-1", Kind::kCheckpointRequest)->checkpoint_request().intent();
  EXPECT_EQ(again.step(), 4);
  EXPECT_TRUE(again.then_stop());
  cluster.Commit("a", again.attempt(), 4);
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_CANCELLED);
  EXPECT_EQ(NewestCommit(cluster.job("a"))->step(), 4);
}

TEST(CancelWithCheckpoint, IsCalledOffWhereTheRanksFailFirstAndTheJobRecovers) {
  TestCluster cluster;
  RunJob(cluster, 1, 1, 30);
  AllReportUpTo(cluster, 1, 3);
  const CallId call = CancelWithCheckpoint(cluster);
  cluster.Crash("a", 0);
  ASSERT_NE(ReplyTo(cluster, call), nullptr);
  EXPECT_EQ(ReplyTo(cluster, call)->status.code(), StatusCode::kAborted);
  EXPECT_FALSE(HasEnded(cluster.job("a")));
  EXPECT_EQ(StopAttempt(cluster.job("a").record), 0);
}

TEST(CancelWithCheckpoint, OfAJobThatIsNotRunningIsRefusedUnlessNothingRan) {
  TestCluster cluster;
  cluster.Connect("worker-0");
  cluster.Submit(TestSpec("a", 1, 10));
  cluster.Submit(TestSpec("b", 1, 10));
  ASSERT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_STARTING);
  const CallId call = CancelWithCheckpoint(cluster);
  EXPECT_EQ(ReplyTo(cluster, call)->status.code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_STARTING);
  CancelJobCall queued{cluster.next_call++, {}};
  queued.request.set_name("b");
  queued.request.set_checkpoint(true);
  cluster.Do(queued);
  EXPECT_TRUE(ReplyTo(cluster, queued.call)->status.ok());
  EXPECT_EQ(cluster.job("b").record.state(), v1::JOB_STATE_CANCELLED);
}

TEST(Inherited, AttemptsThatMayHaveBeenWrittenAreDeletedOnDiskNotForgotten) {
  TestCluster cluster;
  RunJob(cluster, 1, 1, 30);
  AllReportUpTo(cluster, 1, 5);
  cluster.Pass(std::chrono::seconds(1));
  const int64_t attempt = AttemptOf(cluster, 10);
  cluster.Restart();
  cluster.Reconnect("worker-0");
  AllReportUpTo(cluster, 6, 12);
  EXPECT_EQ(cluster.job("a").checkpoints.at(attempt).state(), v1::CHECKPOINT_STATE_ABORTED);
  EXPECT_EQ(cluster.Last("worker-0", Kind::kDeleteCheckpoint)->delete_checkpoint().attempt(),
            attempt);
  cluster.Deleted("a", attempt);
  EXPECT_FALSE(cluster.job("a").checkpoints.contains(attempt));
}

TEST(Inherited, AVoteThatComesBeforeTheReportsStillCommits) {
  TestCluster cluster;
  RunJob(cluster, 1, 1, 30);
  AllReportUpTo(cluster, 1, 5);
  cluster.Pass(std::chrono::seconds(1));
  const int64_t attempt = AttemptOf(cluster, 10);
  cluster.Restart();
  cluster.Reconnect("worker-0");
  cluster.Vote("a", attempt, 10, 0);
  AllReportUpTo(cluster, 6, 15);
  cluster.WriteManifest("a", attempt);
  ASSERT_NE(NewestCommit(cluster.job("a")), nullptr);
  EXPECT_EQ(NewestCommit(cluster.job("a"))->step(), 10);
}

TEST(Inherited, AttemptsAheadOfTheReportsAreDeletedWhenTheEpochEnds) {
  TestCluster cluster;
  RunJob(cluster, 1, 1, 30);
  AllReportUpTo(cluster, 1, 5);
  const int64_t attempt = AttemptOf(cluster, 20);
  cluster.Disconnect("worker-0");
  cluster.Connect("worker-0");
  EXPECT_EQ(cluster.Count("worker-0", Kind::kDeleteCheckpoint), 3)
      << "ranks may have run ahead while the stream was away";
  EXPECT_EQ(cluster.job("a").checkpoints.at(attempt).state(), v1::CHECKPOINT_STATE_ABORTED);
}

TEST(Requests, TwoAtOnceAreOne) {
  TestCluster cluster;
  RunJob(cluster, 2, 2, 30);
  const CallId first = Ask(cluster);
  const CallId second = Ask(cluster);
  EXPECT_EQ(cluster.Count("worker-0", Kind::kCheckpointRequest), 1);
  cluster.Commit("a", NewestRequest(cluster), 2);
  ASSERT_NE(ReplyTo(cluster, first), nullptr);
  ASSERT_NE(ReplyTo(cluster, second), nullptr);
  EXPECT_TRUE(ReplyTo(cluster, first)->status.ok());
  EXPECT_TRUE(ReplyTo(cluster, second)->status.ok());
}

TEST(Requests, AreAnsweredByTheCancelsThatCameAfterThem) {
  TestCluster cluster;
  RunJob(cluster, 2, 2, 30);
  const CallId asked = Ask(cluster);
  const int64_t lower = NewestRequest(cluster);
  CancelWithCheckpoint(cluster);
  const CallId joined = Ask(cluster);
  const int64_t higher = NewestRequest(cluster);
  ASSERT_GT(higher, lower);
  // Ranks know only the highest request.
  AllReportUpTo(cluster, 1, 2);
  cluster.Vote("a", higher, 2, 0);
  EXPECT_FALSE(cluster.job("a").attempts.contains(lower));
  cluster.Vote("a", higher, 2, 1);
  cluster.WriteManifest("a", higher);
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_CANCELLED);
  ASSERT_NE(ReplyTo(cluster, asked), nullptr);
  EXPECT_TRUE(ReplyTo(cluster, asked)->status.ok());
  ASSERT_NE(ReplyTo(cluster, joined), nullptr);
  EXPECT_TRUE(ReplyTo(cluster, joined)->status.ok());
}

TEST(Requests, ThatNoRankBeginsEndWithinALimit) {
  TestCluster cluster;
  RunJob(cluster, 1, 1, 30);
  cluster.state().jobs.at("a").spec.mutable_fault_tolerance()->set_hang_seconds(100);
  const CallId call = Ask(cluster);
  int64_t step = 0;
  for (; step < 25; ++step) {
    AllReportUpTo(cluster, step + 1, step + 1);
    Wait(cluster, 30);
  }
  ASSERT_NE(ReplyTo(cluster, call), nullptr);
  EXPECT_EQ(ReplyTo(cluster, call)->status.code(), StatusCode::kAborted);
  EXPECT_EQ(cluster.job("a").record.restarts(), 0);
}

TEST(Deletions, OfAbortedAttemptsAreRepeatedUntilNoRankMayWriteThere) {
  TestCluster cluster;
  RunJob(cluster, 2, 2, 30);
  AllReportUpTo(cluster, 1, 10);
  const int64_t attempt = AttemptOf(cluster, 10);
  Fail(cluster, attempt);
  cluster.Deleted("a", attempt);
  ASSERT_TRUE(cluster.job("a").checkpoints.contains(attempt)) << "rank 1 may still write";
  cluster.worker("worker-0").inbox.clear();
  AllReportUpTo(cluster, 11, 20);
  cluster.Commit("a", AttemptOf(cluster, 20), 20);
  EXPECT_EQ(cluster.Count("worker-0", Kind::kDeleteCheckpoint), 1);
  cluster.Deleted("a", attempt);
  EXPECT_FALSE(cluster.job("a").checkpoints.contains(attempt));
}

TEST(Deletions, ThatWereRequestedWhileARankCouldWriteLeaveTheAttemptToTheNextRequest) {
  TestCluster cluster;
  RunJob(cluster, 2, 2, 30);
  AllReportUpTo(cluster, 1, 10);
  const int64_t attempt = AttemptOf(cluster, 10);
  Fail(cluster, attempt);
  const v1::DeleteCheckpoint early =
      cluster.Last("worker-0", Kind::kDeleteCheckpoint)->delete_checkpoint();
  EXPECT_FALSE(early.none_writes()) << "rank 1 may still write";
  cluster.Crash("a", 1);
  cluster.StopRanks("a", 1, {"worker-0", "worker-1"});
  EXPECT_TRUE(cluster.Last("worker-0", Kind::kDeleteCheckpoint)->delete_checkpoint().none_writes());
  // The worker removed the files before rank 1 wrote its part, and its answer was slow.
  v1::WorkerMessage answer;
  answer.mutable_checkpoint_deleted()->set_job("a");
  answer.mutable_checkpoint_deleted()->set_attempt(attempt);
  answer.mutable_checkpoint_deleted()->set_path(early.path());
  cluster.SendFrom("worker-0", answer);
  EXPECT_TRUE(cluster.job("a").checkpoints.contains(attempt));
  cluster.Deleted("a", attempt);
  EXPECT_FALSE(cluster.job("a").checkpoints.contains(attempt));
}

TEST(Deletions, OfAJobThatEndedComeOnceItsLastRankHasStopped) {
  TestCluster cluster;
  RunJob(cluster, 2, 2, 30);
  AllReportUpTo(cluster, 1, 10);
  const int64_t attempt = AttemptOf(cluster, 10);
  cluster.Vote("a", attempt, 10, 0);
  cluster.Do([&] {
    CancelJobCall call{cluster.next_call++, {}};
    call.request.set_name("a");
    return call;
  }());
  EXPECT_EQ(cluster.Count("worker-0", Kind::kDeleteCheckpoint), 0);
  cluster.StopRanks("a", 1, {"worker-0"});
  EXPECT_EQ(cluster.Count("worker-0", Kind::kDeleteCheckpoint), 0);
  cluster.StopRanks("a", 1, {"worker-1"});
  EXPECT_EQ(cluster.Count("worker-0", Kind::kDeleteCheckpoint), 3) << "of steps 10, 20 and 30";
  // The worker was absent, so the deletions are resent to it, also after a restart.
  cluster.Restart();
  cluster.Reconnect("worker-0");
  EXPECT_EQ(cluster.Count("worker-0", Kind::kDeleteCheckpoint), 3);
  for (int64_t number = 1; number <= 3; ++number) cluster.Deleted("a", number);
  EXPECT_THAT(cluster.job("a").checkpoints, IsEmpty());
}

// Ranks that write a checkpoint report no step.
TEST(Writing, IsNoHangWhileRankZeroReportsItAndTheDiskIsSlow) {
  TestCluster cluster;
  RunJob(cluster, 2, 2, 30);
  Job& job = cluster.state().jobs.at("a");
  job.plan.add_memory()->set_parameter_bytes(5'000'000'000);  // write time 100 s
  AllReportUpTo(cluster, 1, 9);
  v1::WorkerMessage report;
  report.mutable_step_report()->set_job("a");
  report.mutable_step_report()->set_group_epoch(1);
  report.mutable_step_report()->set_step(10);
  report.mutable_step_report()->set_checkpoint_attempt(AttemptOf(cluster, 10));
  cluster.SendFrom("worker-0", report);
  cluster.Report("a", 10, 1);
  Wait(cluster, 600);
  EXPECT_EQ(job.record.restarts(), 0);
  // One rank gives up; the other is at that step and still writes.
  Fail(cluster, AttemptOf(cluster, 10), 1);
  Wait(cluster, 100);
  EXPECT_EQ(job.record.restarts(), 0);
  Wait(cluster, 15);  // the pace allows 6 s in addition to the write
  EXPECT_EQ(job.record.restarts(), 1);
}

TEST(Writing, OfAnAttemptHasALimit) {
  TestCluster cluster;
  RunJob(cluster, 1, 1, 30);
  cluster.state().jobs.at("a").plan.add_memory()->set_parameter_bytes(5'000'000'000);
  AllReportUpTo(cluster, 1, 10);
  const int64_t attempt = AttemptOf(cluster, 10);
  cluster.Vote("a", attempt, 10, 0);
  Wait(cluster, 695);
  EXPECT_TRUE(cluster.job("a").attempts.contains(attempt));
  Wait(cluster, 10);
  EXPECT_FALSE(cluster.job("a").attempts.contains(attempt));
}

TEST(Late, TwoAttemptsAtOnceAbortEachWithoutTheOther) {
  TestCluster cluster;
  RunJob(cluster, 2, 2, 30);
  AllReportUpTo(cluster, 1, 29);
  Ask(cluster);
  const int64_t asked = NewestRequest(cluster);
  AllReportUpTo(cluster, 30, 30);
  cluster.Vote("a", AttemptOf(cluster, 30), 30, 0);
  cluster.Vote("a", asked, 30, 0);
  Wait(cluster, 605);
  EXPECT_THAT(cluster.job("a").attempts, IsEmpty());
  EXPECT_EQ(cluster.Count("worker-1", Kind::kSaveImages), 1);
}

}  // namespace
}  // namespace troupe
