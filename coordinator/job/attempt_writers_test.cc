#include "coordinator/job/attempt_writers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/test_cluster.h"

namespace troupe {
namespace {

// Runs job `a` with two ranks that save in the background.
void RunAsyncJob(TestCluster& cluster) {
  RunJob(cluster, 2, 2, 30);
  cluster.state().jobs.at("a").spec.mutable_checkpoint()->set_async_mode("async");
}

// Both ranks report `step` and the attempts that they write.
void Report(TestCluster& cluster, int64_t step, int64_t rank_0_writes, int64_t rank_1_writes) {
  for (int32_t rank = 0; rank < 2; ++rank) {
    v1::WorkerMessage message;
    v1::StepReport& report = *message.mutable_step_report();
    report.set_job("a");
    report.set_group_epoch(1);
    report.set_rank(rank);
    report.set_step(step);
    report.set_writing_attempt(rank == 0 ? rank_0_writes : rank_1_writes);
    cluster.SendFrom(cluster.job("a").last_group.ranks(rank).worker(), message);
  }
}

void ReportUpTo10(TestCluster& cluster) {
  for (int64_t step = 1; step <= 10; ++step) Report(cluster, step, 0, 0);
}

TEST(AsyncSaves, AnAbortedAttemptIsKeptInMindAsLongAsARankReportsThatItWritesIt) {
  TestCluster cluster;
  RunAsyncJob(cluster);
  ReportUpTo10(cluster);
  const int64_t attempt = AttemptOf(cluster, 10);
  v1::WorkerMessage failed;
  failed.mutable_shard_failed()->set_job("a");
  failed.mutable_shard_failed()->set_group_epoch(1);
  failed.mutable_shard_failed()->set_attempt(attempt);
  cluster.SendFrom(cluster.job("a").last_group.ranks(0).worker(), failed);
  Report(cluster, 11, 0, attempt);
  cluster.Deleted("a", attempt);
  EXPECT_TRUE(cluster.job("a").checkpoints.contains(attempt)) << "rank 1 may still write";
  Report(cluster, 12, 0, 0);
  cluster.Reconnect(cluster.job("a").last_group.ranks(0).worker());  // it is requested again
  cluster.Deleted("a", attempt);
  EXPECT_FALSE(cluster.job("a").checkpoints.contains(attempt));
}

TEST(AsyncSaves, AnAttemptThatSomeRankStillWritesIsNotTakenForSkipped) {
  TestCluster cluster;
  RunAsyncJob(cluster);
  ReportUpTo10(cluster);
  const int64_t attempt = AttemptOf(cluster, 10);
  for (int64_t step = 11; step <= 15; ++step) Report(cluster, step, 0, attempt);
  EXPECT_EQ(cluster.job("a").record.skipped_checkpoints(), 0);
  cluster.Commit("a", attempt, 10);
  EXPECT_THAT(cluster.Events("a"), ::testing::Contains("CHECKPOINT_COMMITTED"));
}

TEST(AsyncSaves, AGroupThatHangsIsNoticedThoughACheckpointIsBeingWritten) {
  for (const bool async : {false, true}) {
    TestCluster cluster;
    RunAsyncJob(cluster);
    if (!async) cluster.state().jobs.at("a").spec.mutable_checkpoint()->set_async_mode("disabled");
    ReportUpTo10(cluster);
    Report(cluster, 11, AttemptOf(cluster, 10), AttemptOf(cluster, 10));
    EXPECT_EQ(HoldsUpRanks(cluster.job("a")), !async);
    constexpr int kLimit = 400;
    EXPECT_EQ(SecondsUntilBroken(cluster, kLimit) <= kLimit, async);
  }
}

}  // namespace
}  // namespace troupe
