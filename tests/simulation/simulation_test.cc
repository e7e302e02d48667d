// Whole clusters under faults, seed by seed. A seed that breaks an invariant is printed with its
// story and can be replayed with `troupe-simulate --seed N`.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "actor/sim/system.h"
#include "base/testing/test_extent.h"
#include "tests/simulation/catalog_observer.h"
#include "tests/simulation/cluster.h"

namespace troupe::simulation {
namespace {

// Under a sanitizer only a few seeds run, because any seed runs through most of the code. They must
// break no invariant; events that only many seeds show are expected only in builds that run many.
// `./run test full` runs five times as many.
constexpr bool kManySeeds = !kInstrumented;
const uint64_t kSeedsPerShard = RunsWholeTables() ? 100 : kManySeeds ? 20 : 2;
constexpr uint64_t kTraitSeeds = kManySeeds ? 12 : 2;
constexpr uint64_t kRareTraitSeeds = kManySeeds ? 40 : 2;
constexpr uint64_t kShards = 10;

// Expects that many seeds together show more than `more_than` of something.
void ExpectOfManySeeds(const char* what, uint64_t seen, uint64_t more_than) {
  if (kManySeeds) {
    EXPECT_GT(seen, more_than) << what;
  }
}

class SimulatedClusters : public testing::TestWithParam<uint64_t> {};

// Each seed runs twice: a run must depend on the seed alone.
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
  // A cluster in which nothing happens would keep every invariant, too.
  ExpectOfManySeeds("steps", steps, 100 * kSeedsPerShard);
  ExpectOfManySeeds("rows of histories", rows, 20 * kSeedsPerShard);
  ExpectOfManySeeds("commits", commits, kSeedsPerShard);
  ExpectOfManySeeds("deletions", deletions, kSeedsPerShard / 4);
  ExpectOfManySeeds("starts of coordinators", starts, kSeedsPerShard);
}

INSTANTIATE_TEST_SUITE_P(Shards, SimulatedClusters, testing::Range<uint64_t>(0, kShards));

// --- One trait at a time: it must show an effect and break no invariant.

struct TraitCase {
  std::string trait;
  uint64_t ClusterResult::*shows;  // its effect in some of the seeds
  uint64_t seeds = kTraitSeeds;
};

class Traits : public testing::TestWithParam<TraitCase> {};

TEST_P(Traits, ShowAndBreakNothing) {
  uint64_t shown = 0;
  for (uint64_t seed = 1; seed <= GetParam().seeds; ++seed) {
    const ClusterOptions options{.seed = seed, .mix = MixOf(GetParam().trait)};
    const ClusterResult result = RunCluster(options);
    ASSERT_TRUE(result.ok()) << result.story;
    shown += result.*GetParam().shows;
  }
  // Some traits show an effect in only one seed of ten.
  ExpectOfManySeeds("what the trait leaves behind", shown, 0);
}

INSTANTIATE_TEST_SUITE_P(
    All, Traits,
    testing::Values(TraitCase{"asynchronous-saves", &ClusterResult::reports_during_saves},
                    TraitCase{"resumes", &ClusterResult::resumed},
                    TraitCase{"catalog-loss", &ClusterResult::rebuilt},
                    TraitCase{"stranger", &ClusterResult::lies},
                    TraitCase{"bad-hosts", &ClusterResult::strikes},
                    TraitCase{"lost-mounts", &ClusterResult::lost_mounts},
                    TraitCase{"hung-writes", &ClusterResult::hung_saves},
                    TraitCase{"hangs", &ClusterResult::blamed_hangs},
                    TraitCase{"slow-saves", &ClusterResult::waiting_saves},
                    TraitCase{"short-final-saves", &ClusterResult::images},
                    TraitCase{"planned-stops", &ClusterResult::goodbyes},
                    TraitCase{"drains", &ClusterResult::moves},
                    TraitCase{"private-folders", &ClusterResult::refused_folders},
                    TraitCase{"layout-changes", &ClusterResult::growths, kRareTraitSeeds},
                    TraitCase{"small-budgets", &ClusterResult::saved_by_budget},
                    TraitCase{"altered-requests", &ClusterResult::refused_alterations},
                    TraitCase{"deletions", &ClusterResult::deleted_jobs},
                    TraitCase{"quotas", &ClusterResult::quota_waits},
                    TraitCase{"few-ended-kept", &ClusterResult::deleted_jobs},
                    TraitCase{"leavers", &ClusterResult::left},
                    TraitCase{"clocks", &ClusterResult::clocks_set_back}),
    [](const auto& info) {
      std::string name = info.param.trait;
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

// --- Seeds that broke an invariant once.

struct FormerFailure {
  std::string name;
  uint64_t seed;
  Mix mix;
};

Mix DeletionsWith(int lost_mounts) {
  Mix mix = *MixOf("deletions");
  mix.lost_mounts = lost_mounts;
  return mix;
}

// The mix that the seed drew before workers could be asked to stop.
Mix WithoutStops(uint64_t seed) {
  Mix mix = DrawMix(seed);
  mix.planned_stops = 0;
  return mix;
}

// The mix that the seed drew before writes could hang, too.
Mix WithoutHungWrites(uint64_t seed) {
  Mix mix = WithoutStops(seed);
  mix.hung_writes = 0;
  return mix;
}

class FormerFailures : public testing::TestWithParam<FormerFailure> {};

TEST_P(FormerFailures, BreakNothingNow) {
  const ClusterResult result = RunCluster({.seed = GetParam().seed, .mix = GetParam().mix});
  EXPECT_TRUE(result.ok()) << result.story;
}

INSTANTIATE_TEST_SUITE_P(
    All, FormerFailures,
    testing::Values(
        // The model of a rank that had ended heard that a peer was gone, and wrote once more.
        FormerFailure{"WriteAfterTheEnd128", 128, DeletionsWith(0)},
        FormerFailure{"WriteAfterTheEnd270", 270, DeletionsWith(0)},
        FormerFailure{"WriteAfterTheEnd5127", 5127, WithoutHungWrites(5127)},
        // A job began on a single host whose mount was lost, and has its folder there.
        FormerFailure{"FolderOnOneHost21", 21, DeletionsWith(8)},
        FormerFailure{"FolderOnOneHost137", 137, DeletionsWith(8)},
        // A rank was blamed that wrote one attempt after the other.
        FormerFailure{"WritesInTurn204", 204, WithoutStops(204)},
        FormerFailure{"WritesInTurn473", 473, WithoutHungWrites(473)},
        // The run ended while a job with a private folder still trained.
        FormerFailure{"PrivateFolder582", 582, WithoutHungWrites(582)},
        // Nobody was blamed for a write that hung between two steps, and the host was chosen again.
        FormerFailure{"HangBetweenSteps4", 4, *MixOf("hung-writes")},
        FormerFailure{"HangBetweenSteps49", 49, *MixOf("hung-writes")}),
    [](const auto& info) { return info.param.name; });

TEST(Mixes, DifferFromSeedToSeed) {
  std::set<std::string> texts;
  for (uint64_t seed = 1; seed <= 50; ++seed) texts.insert(DrawMix(seed).Text());
  EXPECT_GT(texts.size(), 8u);
  EXPECT_FALSE(MixOf("no-such-trait"));
}

// --- The catalog's observer: which writers' batches may take effect.

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

// --- Retention may delete only superseded commits.

class Retention : public testing::Test {
 protected:
  Retention() {
    v1::JobSpec spec;
    spec.mutable_training()->set_seed(kSeed);
    WriteBatch batch;
    batch.Put("job/a", v1::JobRecord().SerializeAsString());
    batch.Put("spec/a", spec.SerializeAsString());
    batch.Put("group/a", v1::GroupRecord().SerializeAsString());
    observer_.OnWrite(batch);
  }

  // Makes a commit of job "a" with its own step; verified as a worker would, or by a lie.
  void Commit(int64_t attempt, bool verified, bool lies = false) {
    const int64_t step = 2 * attempt;
    v1::CheckpointRecord& record = records_[attempt];
    record.set_job("a");
    record.set_attempt(attempt);
    record.set_step(step);
    record.set_path(fmt::format("/shared/a/{}", attempt));
    v1::CheckpointManifest manifest;
    manifest.mutable_state()->set_step(step);
    v1::ShardFile& file = *manifest.add_shards();
    file.set_name(ShardName(0));
    file.set_digest(
        *world_.storage.WriteShard("worker-0", record.path(), "", 0,
                                   {.step = step, .state = world_.truth.State(kSeed, step)}));
    record.set_digest(*world_.storage.WriteManifest("worker-0", record.path(), "", manifest));
    Put(attempt, v1::CHECKPOINT_STATE_WRITING);
    Put(attempt, v1::CHECKPOINT_STATE_COMMITTED);
    if (!verified) return;
    if (!lies) {
      EXPECT_TRUE(world_.storage.Verify("worker-0", record.path(), record.digest()).ok());
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
  // The invariants broken so far.
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
  world_.storage.Corrupt("/shared/a/3");
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
  world_.storage.Delete("worker-0", "/shared/a/3");
  Put(1, v1::CHECKPOINT_STATE_DELETING);
  EXPECT_EQ(Broken(), std::vector<int>{12});
}

TEST_F(Retention, ByACommitThatIsReportedAsVerifiedAndWasNotIsCaught) {
  Commit(1, true, true);
  EXPECT_EQ(Broken(), std::vector<int>{12});
}

TEST_F(Retention, AQuarantineOfWhatIsWholeIsCaught) {
  Commit(1, true);
  Commit(2, true);
  world_.storage.Corrupt("/shared/a/1");
  Put(1, v1::CHECKPOINT_STATE_QUARANTINED);
  EXPECT_EQ(Broken(), std::vector<int>{});
  Put(2, v1::CHECKPOINT_STATE_QUARANTINED);
  EXPECT_EQ(Broken(), std::vector<int>{11});
}

// --- The deletion of jobs.

class Removal : public Retention {
 protected:
  void End() {
    v1::JobRecord job;
    job.set_state(v1::JOB_STATE_SUCCEEDED);
    WriteBatch batch;
    batch.Put("job/a", job.SerializeAsString());
    observer_.OnWrite(batch);
  }
  void Delete(const std::vector<std::string>& keys) {
    WriteBatch batch;
    for (const std::string& key : keys) batch.Delete(key);
    observer_.OnWrite(batch);
  }
};

TEST_F(Removal, OfAnEndedJobThatWasAskedForKeepsTheInvariant) {
  Commit(1, true);
  End();
  observer_.DeletionAsked("a", false);
  Delete({"checkpoint/a/1", "job/a", "spec/a", "group/a"});
  EXPECT_EQ(Broken(), std::vector<int>{});
  EXPECT_TRUE(observer_.IsDeleted("a"));
  EXPECT_EQ(observer_.kept_commits().size(), 1u);
}

TEST_F(Removal, OfAJobThatRunsIsCaught) {
  observer_.DeletionAsked("a", false);
  Delete({"job/a", "spec/a", "group/a"});
  EXPECT_EQ(Broken(), std::vector<int>{kDeletion});
}

TEST_F(Removal, ThatNobodyAskedForIsCaughtUnlessFewAreKept) {
  End();
  Delete({"job/a", "spec/a", "group/a"});
  EXPECT_EQ(Broken(), std::vector<int>{kDeletion});
}

TEST_F(Removal, ThatLeavesARowIsCaught) {
  End();
  observer_.EndedMayGo();
  Delete({"job/a", "spec/a"});
  EXPECT_EQ(Broken(), std::vector<int>{kDeletion});
}

TEST_F(Removal, OfAJobWhoseRanksMayLiveIsCaught) {
  v1::LeaseRecord lease;
  lease.set_job("a");
  WriteBatch batch;
  batch.Put("lease/worker-0/0", lease.SerializeAsString());
  observer_.OnWrite(batch);
  End();
  observer_.EndedMayGo();
  Delete({"job/a", "spec/a", "group/a"});
  EXPECT_EQ(Broken(), std::vector<int>{kDeletion});
}

TEST_F(Removal, WithItsCheckpointsThatLeavesTheirFilesIsCaught) {
  Commit(1, true);
  End();
  observer_.DeletionAsked("a", true);
  Delete({"checkpoint/a/1", "job/a", "spec/a", "group/a"});
  EXPECT_EQ(Broken(), std::vector<int>{kDeletion});
}

// --- A group must not repeat steps that it had to begin after.

class Repetition : public Retention {
 protected:
  // Job "a" begins a group; if `grows`, after it had stopped in order to grow.
  void Group(uint64_t epoch, bool grows = false) {
    v1::JobRecord job;
    job.set_state(v1::JOB_STATE_RECOVERING);
    job.set_group_epoch(epoch - 1);
    job.set_grows(grows);
    v1::GroupRecord group;
    group.set_group_epoch(epoch);
    WriteBatch batch;
    batch.Put("job/a", job.SerializeAsString());
    batch.Put("group/a", group.SerializeAsString());
    job.set_group_epoch(epoch);
    batch.Put("job/a", job.SerializeAsString());
    observer_.OnWrite(batch);
  }
  void Row(uint64_t epoch, int64_t step) {
    v1::StepEvent row;
    row.set_step(step);
    row.set_group_epoch(epoch);
    row.set_loss(Loss(kSeed, step));
    row.set_grad_norm(static_cast<double>(epoch));
    WriteBatch batch;
    batch.Put(fmt::format("history/a/{}", step), row.SerializeAsString());
    observer_.OnWrite(batch);
  }
};

TEST_F(Repetition, OfStepsAfterTheNewestCommitKeepsTheInvariant) {
  Commit(1, true);  // step 2 of group epoch 0
  Group(1);
  Row(1, 3);
  Row(1, 4);
  Group(2);
  Row(2, 3);
  EXPECT_EQ(Broken(), std::vector<int>{});
}

TEST_F(Repetition, OfACommittedStepIsCaught) {
  Commit(1, true);
  Group(1);
  Row(1, 2);
  EXPECT_EQ(Broken(), std::vector<int>{kGrowsWithoutLoss});
}

TEST_F(Repetition, OfAnyStepByAGroupThatGrewIsCaught) {
  Group(1);
  Row(1, 1);
  Row(1, 2);
  Group(2, true);
  Row(2, 2);
  EXPECT_EQ(Broken(), std::vector<int>{kGrowsWithoutLoss});
}

}  // namespace
}  // namespace troupe::simulation
