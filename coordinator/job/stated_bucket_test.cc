// Tests that a job whose layout changes is warned of numbers of parallelism.bucket that were stated
// for its former layout.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/test_cluster.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

v1::JobSpec SpecWithPadding(int ranks) {
  v1::JobSpec spec = TestSpec("a", ranks, 100);
  v1::ParallelismSpec& parallelism = *spec.mutable_parallelism();
  parallelism.set_data_parallel_shard_degree(1);
  parallelism.set_context_parallel_degree(1);
  parallelism.set_expert_parallel_degree(1);
  parallelism.mutable_bucket()->set_padding(96);
  spec.mutable_fault_tolerance()->set_allow_layout_change(true);
  return spec;
}

std::vector<std::string> WarningsOf(const TestCluster& cluster) {
  const v1::Plan& plan = cluster.job("a").plan;
  return {plan.warnings().begin(), plan.warnings().end()};
}

const char* const kForTwo =
    "parallelism.bucket.padding = 96 was stated for a layout with data_replicate 3; this one has "
    "data_replicate 2";

// Cancels job `a` and resumes it on `ranks` ranks; states the padding again if it is above 0.
void ResumeOn(TestCluster& cluster, int ranks, int64_t padding = 0) {
  CancelJobCall cancel{cluster.next_call++, {}};
  cancel.request.set_name("a");
  cluster.Do(cancel);
  ResumeJobCall resume{cluster.next_call++, {}};
  resume.request.set_name("a");
  v1::ParallelismSpec& overrides = *resume.request.mutable_overrides()->mutable_parallelism();
  overrides.set_data_parallel_replicate_degree(ranks);
  if (padding > 0) overrides.mutable_bucket()->set_padding(padding);
  const Effects effects = cluster.Do(resume);
  ASSERT_EQ(effects.replies.size(), 1u);
  ASSERT_TRUE(effects.replies[0].status.ok()) << effects.replies[0].status;
  ASSERT_EQ(cluster.job("a").plan.ranks_size(), ranks);
}

TEST(StatedBucket, OfAResumedJobIsReportedWhereTheLayoutIsAnother) {
  TestCluster cluster;
  cluster.Submit(SpecWithPadding(3));
  EXPECT_THAT(WarningsOf(cluster), IsEmpty());
  ResumeOn(cluster, 2);
  EXPECT_THAT(WarningsOf(cluster), ElementsAre(kForTwo));
  cluster.Restart();
  EXPECT_THAT(WarningsOf(cluster), ElementsAre(kForTwo));
  ResumeOn(cluster, 2);
  EXPECT_THAT(WarningsOf(cluster), ElementsAre(kForTwo)) << "it is still a number for three ranks";
  ResumeOn(cluster, 3);
  EXPECT_THAT(WarningsOf(cluster), IsEmpty());
}

TEST(StatedBucket, ThatIsStatedAgainAtTheResumeIsForTheNewLayout) {
  TestCluster cluster;
  cluster.Submit(SpecWithPadding(3));
  ResumeOn(cluster, 2, 96);
  EXPECT_THAT(WarningsOf(cluster), IsEmpty());
  ResumeOn(cluster, 3);
  EXPECT_THAT(WarningsOf(cluster),
              ElementsAre("parallelism.bucket.padding = 96 was stated for a layout with "
                          "data_replicate 2; this one has data_replicate 3"));
}

TEST(StatedBucket, OfAJobThatContinuesOnFewerRanksIsReported) {
  TestCluster cluster;
  for (const char* worker : {"worker-0", "worker-1", "worker-2"}) cluster.Connect(worker);
  cluster.Submit(SpecWithPadding(3));
  cluster.StartRanks("a");
  ReportUpTo(cluster, 1, 3);
  EXPECT_THAT(WarningsOf(cluster), IsEmpty());
  const auto pass = [&](int seconds) {
    for (int second = 0; second < seconds; ++second) {
      cluster.Heartbeat();
      cluster.Pass(std::chrono::seconds(1));
    }
  };
  cluster.Disconnect("worker-2");
  pass(4);
  cluster.StopRanks("a", 1, {"worker-0", "worker-1"});
  pass(8);
  ASSERT_EQ(cluster.job("a").plan.ranks_size(), 2);
  EXPECT_THAT(WarningsOf(cluster), ElementsAre(kForTwo));
}

}  // namespace
}  // namespace troupe
