// Whole clusters under faults, seed by seed. A seed that breaks an invariant is printed with its
// story and replayed by `troupe-simulate --seed N`.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

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
  uint64_t steps = 0, commits = 0, deletions = 0, rows = 0, starts = 0;
  for (uint64_t i = 0; i < kSeedsPerShard; ++i) {
    const ClusterOptions options{.seed = 1 + GetParam() * kSeedsPerShard + i};
    const ClusterResult first = RunCluster(options);
    ASSERT_TRUE(first.ok()) << first.story;
    const ClusterResult again = RunCluster(options);
    ASSERT_EQ(first.hash, again.hash) << "seed " << options.seed << " does not replay";
    ASSERT_EQ(first.events, again.events) << "seed " << options.seed << " does not replay";
    steps += first.steps_applied;
    commits += first.commits;
    deletions += first.deletions;
    rows += first.history_rows;
    starts += first.coordinator_starts;
  }
  // A cluster in which nothing happens keeps every invariant.
  EXPECT_GT(steps, 100 * kSeedsPerShard);
  EXPECT_GT(rows, 20 * kSeedsPerShard);
  EXPECT_GT(commits, kSeedsPerShard);
  // In two seeds alone every deletion may still wait for its read-back.
  if (kSeedsPerShard >= 100) {
    EXPECT_GT(deletions, kSeedsPerShard / 2);
  }
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

// --- Whether what retention deletes is superseded.

class Retention : public testing::Test {
 protected:
  Retention() {
    v1::JobSpec spec;
    spec.mutable_training()->set_seed(kSeed);
    WriteBatch batch;
    batch.Put("job/a", v1::JobRecord().SerializeAsString());
    batch.Put("spec/a", spec.SerializeAsString());
    observer_.OnWrite(batch);
  }

  // A commit of job "a", of its own step; verified as a worker would, or by a lie.
  void Commit(int64_t attempt, bool verified, bool lies = false) {
    const int64_t step = 2 * attempt;
    v1::CheckpointRecord& record = records_[attempt];
    record.set_job("a");
    record.set_attempt(attempt);
    record.set_step(step);
    record.set_path(fmt::format("/shared/{}", attempt));
    v1::CheckpointManifest manifest;
    manifest.mutable_state()->set_step(step);
    v1::ShardFile& file = *manifest.add_shards();
    file.set_name(ShardName(0));
    file.set_digest(world_.storage.WriteShard(
        record.path(), 0, {.step = step, .state = world_.truth.State(kSeed, step)}));
    record.set_digest(world_.storage.WriteManifest(record.path(), manifest));
    Put(attempt, v1::CHECKPOINT_STATE_WRITING);
    Put(attempt, v1::CHECKPOINT_STATE_COMMITTED);
    if (!verified) return;
    if (!lies) {
      EXPECT_TRUE(world_.storage.Verify(record.path(), record.digest()).ok());
    }
    record.set_verified(true);
    Put(attempt, v1::CHECKPOINT_STATE_COMMITTED);
  }
  void Put(int64_t attempt, v1::CheckpointState state) {
    v1::CheckpointRecord& record = records_.at(attempt);
    record.set_state(state);
    WriteBatch batch;
    batch.Put(fmt::format("checkpoint/a/{}", attempt), record.SerializeAsString());
    observer_.OnWrite(batch);
  }
  // The invariants that broke so far.
  std::vector<int> Broken() const {
    std::vector<int> broken;
    for (const Violation& violation : world_.truth.violations()) {
      broken.push_back(violation.invariant);
    }
    return broken;
  }

  static constexpr uint64_t kSeed = 5;
  SimulatedSystem system_{{.seed = 1}};
  World world_{system_, 1, MakeTimeLimits(1)};
  CatalogObserver observer_{world_};
  std::map<int64_t, v1::CheckpointRecord> records_;
};

TEST_F(Retention, OfWhatTwoVerifiedCommitsSupersedeKeepsTheInvariantThoughTheyGoBadLater) {
  Commit(1, false);
  Commit(2, true);
  Commit(3, true);
  world_.storage.Corrupt("/shared/3");
  Put(1, v1::CHECKPOINT_STATE_DELETING);
  EXPECT_EQ(Broken(), std::vector<int>{});
  EXPECT_EQ(observer_.deletions(), 1u);
}

TEST_F(Retention, OfWhatCommitsSupersedeThatWereNotReadBackIsCaught) {
  Commit(1, false);
  Commit(2, false);
  Commit(3, true);
  Commit(4, false);
  Put(1, v1::CHECKPOINT_STATE_DELETING);
  EXPECT_EQ(Broken(), std::vector<int>{12});
}

TEST_F(Retention, OfWhatLostCommitsSupersedeIsCaught) {
  Commit(1, false);
  Commit(2, true);
  Commit(3, true);
  world_.storage.Delete("/shared/3");
  Put(1, v1::CHECKPOINT_STATE_DELETING);
  EXPECT_EQ(Broken(), std::vector<int>{12});
}

TEST_F(Retention, ByACommitThatIsSaidToBeVerifiedAndWasNotIsCaught) {
  Commit(1, true, true);
  EXPECT_EQ(Broken(), std::vector<int>{12});
}

TEST_F(Retention, AQuarantineOfWhatIsWholeIsCaught) {
  Commit(1, true);
  Commit(2, true);
  world_.storage.Corrupt("/shared/1");
  Put(1, v1::CHECKPOINT_STATE_QUARANTINED);
  EXPECT_EQ(Broken(), std::vector<int>{});
  Put(2, v1::CHECKPOINT_STATE_QUARANTINED);
  EXPECT_EQ(Broken(), std::vector<int>{11});
}

}  // namespace
}  // namespace troupe::simulation
