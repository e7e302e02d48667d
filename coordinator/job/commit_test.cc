// Tests the path from votes and a manifest to a commit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "coordinator/job/attempts.h"
#include "coordinator/job/group.h"
#include "coordinator/job/job_view.h"
#include "coordinator/test_cluster.h"

namespace troupe {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Kind = v1::CoordinatorMessage;

TEST(Commit, ACommitNeedsEveryRanksVoteOnceAndTheManifest) {
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
  // The sample channels are those recorded in the plan.
  const v1::SampleChannels& samples = write->write_manifest().manifest().samples();
  ASSERT_EQ(samples.channels_size(), 1);
  EXPECT_EQ(samples.channels(0).name(), "tokens");
  EXPECT_EQ(samples.version(), 1);
  const Effects effects = cluster.WriteManifest("a", attempt);
  ASSERT_NE(NewestCommit(cluster.job("a")), nullptr);
  EXPECT_THAT(effects.failpoints_before, ElementsAre("catalog.commit.before"));
  // A late vote for a finalised attempt is answered with the attempt's result.
  cluster.worker("worker-1").inbox.clear();
  cluster.Vote("a", attempt, 10, 1);
  EXPECT_TRUE(
      cluster.Last("worker-1", Kind::kCheckpointFinalized)->checkpoint_finalized().committed());
}

TEST(Commit, AVoteOfAnotherLifeOrEpochCountsForNothing) {
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

TEST(Commit, VotesForDifferentStepsAbortTheAttemptAndTrainingGoesOn) {
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
      cluster.Last("worker-1", Kind::kCheckpointFinalized)->checkpoint_finalized().committed());
  ASSERT_EQ(cluster.replies.back().call, 77u);
  EXPECT_EQ(cluster.replies.back().status.code(), StatusCode::kAborted);
  // The files are deleted at once, the record only when no rank may write any more.
  const v1::CoordinatorMessage* const erase = cluster.Last("worker-0", Kind::kDeleteCheckpoint);
  ASSERT_NE(erase, nullptr);
  cluster.Deleted("a", attempt);
  EXPECT_TRUE(cluster.job("a").checkpoints.contains(attempt));
  cluster.Report("a", 5, 0);
  cluster.Report("a", 5, 1);
  cluster.Reconnect("worker-0");  // the deletion is requested again
  cluster.Deleted("a", attempt);
  EXPECT_FALSE(cluster.job("a").checkpoints.contains(attempt));
}

TEST(Commit, AFullDiskAbortsTheAttemptAlone) {
  TestCluster cluster;
  RunJob(cluster, 1, 1);
  ReportUpTo(cluster, 1, 10);
  v1::WorkerMessage failed;
  failed.mutable_shard_failed()->set_job("a");
  failed.mutable_shard_failed()->set_group_epoch(1);
  failed.mutable_shard_failed()->set_attempt(AttemptOf(cluster, 10));
  failed.mutable_shard_failed()->set_reason("No space left on device");
  cluster.SendFrom("worker-0", failed);
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_RUNNING);
  EXPECT_THAT(cluster.Events("a"), Contains("CHECKPOINT_ABORTED"));
}

TEST(Commit, ADueCheckpointThatTheRanksPassedByIsSkippedAndCounted) {
  TestCluster cluster;
  RunJob(cluster, 1, 1);
  ReportUpTo(cluster, 1, 11);
  EXPECT_EQ(cluster.job("a").record.skipped_checkpoints(), 0);
  cluster.Report("a", 12);
  EXPECT_EQ(cluster.job("a").record.skipped_checkpoints(), 1);
  EXPECT_THAT(cluster.Events("a"), Contains("CHECKPOINT_SKIPPED"));
}

TEST(Commit, AClockSetBackChangesNeitherWhatIsNewestNorWhatIsKept) {
  TestCluster cluster;
  cluster.Connect("worker-0");
  v1::JobSpec spec = TestSpec("a", 1, 1000);
  spec.mutable_checkpoint()->set_keep_latest_k(2);
  cluster.Submit(spec);
  cluster.StartRanks("a");
  std::set<std::string> paths;
  for (int64_t step = 1; step <= 4; ++step) {
    cluster.wall_ns = 1'000'000'000 - step * 1000;
    cluster.Report("a", step);
    CreateCheckpointCall call{cluster.next_call++, {}};
    call.request.set_job("a");
    cluster.Do(call);
    const auto& request = cluster.Last("worker-0", Kind::kCheckpointRequest)->checkpoint_request();
    paths.insert(request.intent().path());
    cluster.Commit("a", request.intent().attempt(), step);
    EXPECT_EQ(NewestCommit(cluster.job("a"))->step(), step);
    cluster.VerifyAll("a");
  }
  EXPECT_EQ(paths.size(), 4u);
  cluster.wall_ns = 5;
  cluster.Restart();
  std::vector<int64_t> steps;
  for (const v1::CheckpointRecord& record : ListedCheckpoints(cluster.job("a")))
    steps.push_back(record.step());
  EXPECT_THAT(steps, ElementsAre(3, 4));
}

}  // namespace
}  // namespace troupe
