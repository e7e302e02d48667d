// Reintroduces bugs that were fixed: the simulation must catch each of them.
//
// Catching them needs many seeds but no sanitizer, so these tests run in builds without one.
#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>

#include "base/testing/test_extent.h"
#include "tests/simulation/cluster.h"

namespace troupe::simulation {
namespace {

constexpr uint64_t kSeeds = 40;

// The number of seeds that catch the bug, and which invariant the first of them broke.
struct Caught {
  int seeds = 0;
  int invariant = 0;
  std::string what;
  std::set<int> all;  // every invariant that broke in one of them
};

// Runs seeds until `enough` of them caught the bug and `wanted`, if it is not 0, broke in one. All
// seeds run with whole tables.
Caught Catch(ClusterOptions options, int enough, int wanted = 0) {
  Caught caught;
  for (options.seed = 1; options.seed <= kSeeds; ++options.seed) {
    const bool is_seen = wanted == 0 || caught.all.contains(wanted);
    if (caught.seeds >= enough && is_seen && !RunsWholeTables()) break;
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
  const Caught caught = Catch({.shell_bugs = {.forget_leader_epoch = true}}, 5, 1);
  EXPECT_GE(caught.seeds, 5);
  EXPECT_EQ(caught.invariant, 2) << caught.what;
  EXPECT_TRUE(caught.all.contains(1)) << "two coordinators wrote in one leader epoch";
}

TEST(KnownBugs, AnAcknowledgementBeforeItsWriteIsDurableIsCaught) {
  const Caught caught = Catch({.shell_bugs = {.ack_before_durable = true}}, 1);
  EXPECT_GE(caught.seeds, 1);
  EXPECT_EQ(caught.invariant, 13) << caught.what;
}

TEST(KnownBugs, AStaleGroupEpochThatIsAcceptedIsCaught) {
  const Caught caught = Catch({.machine_bugs = {.accept_stale_epochs = true}}, 2);
  EXPECT_GE(caught.seeds, 2);
  EXPECT_EQ(caught.invariant, 3) << caught.what;
}

TEST(KnownBugs, ADaemonThatNumbersItsLivesByTheClockAloneIsCaught) {
  const Caught caught =
      Catch({.mix = MixOf("clocks"), .worker_bugs = {.number_lives_by_clock = true}}, 2);
  EXPECT_GE(caught.seeds, 2);
  EXPECT_EQ(caught.invariant, 16) << caught.what;
}

TEST(KnownBugs, AnAnswerOfWhoWasNotAskedIsCaught) {
  const Caught caught =
      Catch({.mix = MixOf("stranger"), .machine_bugs = {.accept_unasked_answers = true}}, 1,
            kAuthorization);
  // A lie about a commit is detected only when another host reads the commit back.
  EXPECT_GE(caught.seeds, 1);
  EXPECT_TRUE(caught.all.contains(kAuthorization)) << caught.what;
}

TEST(KnownBugs, LostHostsThatSpendTheBudgetAreCaught) {
  const Caught caught =
      Catch({.mix = MixOf("small-budgets"), .machine_bugs = {.charge_lost_hosts = true}}, 2);
  EXPECT_GE(caught.seeds, 2);
  EXPECT_EQ(caught.invariant, kBudget) << caught.what;
}

TEST(KnownBugs, AGoodbyeThatCountsAsALossIsCaught) {
  const Caught caught =
      Catch({.mix = MixOf("planned-stops"), .machine_bugs = {.blame_stopped_workers = true}}, 5);
  EXPECT_GE(caught.seeds, 5);
  EXPECT_EQ(caught.invariant, kBlamedStop) << caught.what;
}

TEST(KnownBugs, ABadHostThatIsChosenAgainIsCaught) {
  const Caught caught =
      Catch({.mix = MixOf("bad-hosts"), .machine_bugs = {.choose_bad_hosts = true}}, 5);
  EXPECT_GE(caught.seeds, 5);
  EXPECT_EQ(caught.invariant, kBadHostAgain) << caught.what;
}

TEST(KnownBugs, ASubmittedLayoutThatIsForgottenIsCaught) {
  const Caught caught =
      Catch({.mix = MixOf("layout-changes"), .machine_bugs = {.forget_submitted_layout = true}}, 1);
  EXPECT_GE(caught.seeds, 1);
  EXPECT_EQ(caught.invariant, kSubmittedLayout) << caught.what;
}

TEST(KnownBugs, AShrunkJobThatStaysSoIsCaught) {
  const Caught caught =
      Catch({.mix = MixOf("layout-changes"), .machine_bugs = {.never_grow = true}}, 1);
  EXPECT_GE(caught.seeds, 1);
  EXPECT_EQ(caught.invariant, kGrowsBack) << caught.what;
}

TEST(KnownBugs, ACommitWithoutProofOfASharedFolderIsCaught) {
  const Caught caught = Catch(
      {.mix = MixOf("private-folders"), .worker_bugs = {.trust_folders = true}}, 5, kHalfCommit);
  EXPECT_GE(caught.seeds, 5);
  EXPECT_TRUE(caught.all.contains(kHalfCommit)) << caught.what;
}

TEST(KnownBugs, AWriteIntoAFolderOfAnotherIdentityIsCaught) {
  const Caught caught = Catch({.mix = MixOf("lost-mounts"), .worker_bugs = {.trust_folders = true}},
                              5, kForeignWrite);
  EXPECT_GE(caught.seeds, 5);
  EXPECT_TRUE(caught.all.contains(kForeignWrite)) << caught.what;
}

TEST(KnownBugs, AQuarantineOnOneHostsWordIsCaught) {
  // The ranks trust folders. Ranks that check the identity first would recognise a lost mount, and
  // only a daemon that reads back could be wrong.
  const Caught caught = Catch({.mix = MixOf("lost-mounts"),
                               .machine_bugs = {.quarantine_on_one_word = true},
                               .worker_bugs = {.trust_folders = true}},
                              1, kLostMount);
  EXPECT_GE(caught.seeds, 1);
  EXPECT_TRUE(caught.all.contains(kLostMount)) << caught.what;
}

TEST(KnownBugs, AHangThatIsBlamedOnARankThatWaitedIsCaught) {
  const Caught caught =
      Catch({.mix = MixOf("hangs"), .machine_bugs = {.blame_reporting_ranks = true}}, 5);
  EXPECT_GE(caught.seeds, 5);
  EXPECT_EQ(caught.invariant, kBlamedWait) << caught.what;
}

TEST(KnownBugs, ADeletedImageThatAJobNeedsIsCaught) {
  const Caught caught =
      Catch({.mix = MixOf("short-final-saves"), .machine_bugs = {.drop_needed_images = true}}, 2);
  EXPECT_GE(caught.seeds, 2);
  EXPECT_EQ(caught.invariant, kNeededImage) << caught.what;
}

TEST(KnownBugs, AQuotaOfDevicesThatIsIgnoredIsCaught) {
  const Caught caught =
      Catch({.mix = MixOf("quotas"), .machine_bugs = {.ignore_device_quotas = true}}, 2);
  EXPECT_GE(caught.seeds, 2);
  EXPECT_EQ(caught.invariant, kDeviceQuota) << caught.what;
}

TEST(KnownBugs, ABlameForAWriteThatOnlyWaitedItsTurnIsCaught) {
  const Caught caught =
      Catch({.mix = MixOf("slow-saves"), .machine_bugs = {.blame_writers_in_turn = true}}, 2);
  EXPECT_GE(caught.seeds, 2);
  EXPECT_EQ(caught.invariant, kBlamedWrite) << caught.what;
}

}  // namespace
}  // namespace troupe::simulation
