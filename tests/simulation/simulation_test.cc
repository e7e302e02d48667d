// Whole clusters under faults, seed by seed. A seed that breaks an invariant is printed with its
// story and replayed by `troupe-simulate --seed N`.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "actor/sim/system.h"
#include "tests/simulation/catalog_observer.h"
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
  std::set<int> all;  // every invariant that broke in one of them
};

Caught Catch(ClusterOptions options) {
  Caught caught;
  for (options.seed = 1; options.seed <= kBugSeeds; ++options.seed) {
    const ClusterResult result = RunCluster(options);
    if (result.ok()) continue;
    for (const Violation& violation : result.violations) caught.all.insert(violation.invariant);
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
  EXPECT_TRUE(caught.all.contains(1)) << "two coordinators wrote in one leader epoch";
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

// --- The catalog's observer: whose writes may take effect.

class Writers : public testing::Test {
 protected:
  uint64_t Starts(uint64_t leader_epoch) {
    const uint64_t life = observer_.CoordinatorStarts(leader_epoch, {});
    Writes(life, leader_epoch);
    return life;
  }
  void Writes(uint64_t life, uint64_t leader_epoch) {
    WriteBatch batch;
    batch.Put(fmt::format("request/{}", ++requests_), "a");
    observer_.WritesAs(life, leader_epoch);
    observer_.OnWrite(batch);
  }
  int Violations(int invariant) const {
    const auto& all = world_.truth.violations();
    return static_cast<int>(std::count_if(all.begin(), all.end(), [&](const Violation& violation) {
      return violation.invariant == invariant;
    }));
  }

 private:
  SimulatedSystem system_{{.seed = 1}};
  World world_{system_, 1, MakeTimeLimits(1)};
  CatalogObserver observer_{world_};
  int requests_ = 0;
};

TEST_F(Writers, OneAfterTheOtherKeepTheInvariant) {
  const uint64_t first = Starts(1);
  Writes(first, 1);
  const uint64_t second = Starts(2);
  Writes(second, 2);
  EXPECT_EQ(Violations(1), 0);
}

TEST_F(Writers, AWriteOfAFormerLeaderIsCaught) {
  const uint64_t former = Starts(1);
  Starts(2);
  EXPECT_EQ(Violations(1), 0);
  Writes(former, 1);
  EXPECT_EQ(Violations(1), 1);
}

TEST_F(Writers, TwoCoordinatorsInOneLeaderEpochAreCaught) {
  const uint64_t first = Starts(1);
  const uint64_t second = Starts(2);
  EXPECT_EQ(Violations(1), 0);
  Writes(first, 2);
  EXPECT_EQ(Violations(1), 1);
  Writes(second, 2);
  EXPECT_EQ(Violations(1), 1);
}

}  // namespace
}  // namespace troupe::simulation
