// Whole clusters under faults, seed by seed. A seed that breaks an invariant is printed with its
// story and replayed by `troupe-simulate --seed N`.
#include <gtest/gtest.h>

#include <string>

#include "tests/simulation/cluster.h"

namespace troupe::simulation {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr uint64_t kSeedsPerShard = 2;
constexpr uint64_t kBugSeeds = 8;
#else
constexpr uint64_t kSeedsPerShard = 100;
constexpr uint64_t kBugSeeds = 40;
#endif
constexpr uint64_t kShards = 10;

class SimulatedClusters : public testing::TestWithParam<uint64_t> {};

// Each seed runs twice: what a run depends on is the seed alone.
TEST_P(SimulatedClusters, KeepTheInvariantsAndReplayExactly) {
  uint64_t steps = 0, commits = 0, rows = 0, starts = 0;
  for (uint64_t i = 0; i < kSeedsPerShard; ++i) {
    const ClusterOptions options{.seed = 1 + GetParam() * kSeedsPerShard + i};
    const ClusterResult first = RunCluster(options);
    ASSERT_TRUE(first.ok()) << first.story;
    const ClusterResult again = RunCluster(options);
    ASSERT_EQ(first.hash, again.hash) << "seed " << options.seed << " does not replay";
    ASSERT_EQ(first.events, again.events) << "seed " << options.seed << " does not replay";
    steps += first.steps_applied;
    commits += first.commits;
    rows += first.history_rows;
    starts += first.coordinator_starts;
  }
  // A cluster in which nothing happens keeps every invariant.
  EXPECT_GT(steps, 100 * kSeedsPerShard);
  EXPECT_GT(rows, 20 * kSeedsPerShard);
  EXPECT_GT(commits, kSeedsPerShard);
  EXPECT_GT(starts, kSeedsPerShard);
}

INSTANTIATE_TEST_SUITE_P(Shards, SimulatedClusters, testing::Range<uint64_t>(0, kShards));

// How many of some seeds catch the bug, and by which invariant the first of them did.
struct Caught {
  int seeds = 0;
  int invariant = 0;
  std::string what;
};

Caught Catch(ClusterOptions options) {
  Caught caught;
  for (options.seed = 1; options.seed <= kBugSeeds; ++options.seed) {
    const ClusterResult result = RunCluster(options);
    if (result.ok()) continue;
    if (caught.seeds++ == 0) {
      caught.invariant = result.violations.front().invariant;
      caught.what = result.violations.front().what;
    }
  }
  return caught;
}

TEST(KnownBugs, ALeaderEpochThatIsNotPersistedIsCaught) {
  const Caught caught = Catch({.shell_bugs = {.forget_leader_epoch = true}});
  EXPECT_GE(caught.seeds, 5);
  EXPECT_EQ(caught.invariant, 2) << caught.what;
}

TEST(KnownBugs, AnAcknowledgementBeforeItsWriteIsDurableIsCaught) {
  const Caught caught = Catch({.shell_bugs = {.ack_before_durable = true}});
  EXPECT_GE(caught.seeds, 1);
  EXPECT_EQ(caught.invariant, 13) << caught.what;
}

TEST(KnownBugs, AStaleGroupEpochThatIsAcceptedIsCaught) {
  const Caught caught = Catch({.machine_bugs = {.accept_stale_epochs = true}});
  EXPECT_GE(caught.seeds, 2);
  EXPECT_EQ(caught.invariant, 3) << caught.what;
}

}  // namespace
}  // namespace troupe::simulation
