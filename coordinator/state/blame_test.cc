#include "coordinator/state/blame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/state/preference.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const TimeLimits kLimits = MakeTimeLimits(3);
const Duration kHalfLife = kLimits.blame_half_life;
constexpr MonotonicTime kStart{std::chrono::hours(1)};

HostFault Fault(MonotonicTime time, int device = kWholeHost, const std::string& job = "a") {
  return {.job = job, .device = device, .time = time, .text = "RANK_CRASHED"};
}

ClusterView FreeDevices(const std::vector<std::string>& workers) {
  ClusterView view;
  for (const std::string& worker : workers) view.free_devices.push_back({worker, worker, "", {}});
  return view;
}

std::vector<std::string> WorkersOf(const ClusterView& view) {
  std::vector<std::string> workers;
  for (const ClusterDevice& device : view.free_devices) workers.push_back(device.worker);
  return workers;
}

TEST(Blame, TwoFaultsWithinAHalfLifeSetAHostAsideAndTwoFurtherApartDoNot) {
  BlameBook book;
  EXPECT_THAT(LayFault("w", Fault(kStart), kLimits, 0, &book), IsEmpty());
  EXPECT_EQ(StandingOf(book, "w", 0, kStart, kHalfLife), Standing::kSuspect);
  EXPECT_THAT(LayFault("w", Fault(kStart + kHalfLife), kLimits, 0, &book), ElementsAre("w"));
  EXPECT_EQ(StandingOf(book, "w", 0, kStart + kHalfLife, kHalfLife), Standing::kSetAside);
  BlameBook slow;
  LayFault("w", Fault(kStart), kLimits, 0, &slow);
  EXPECT_THAT(LayFault("w", Fault(kStart + 2 * kHalfLife), kLimits, 0, &slow), IsEmpty());
}

TEST(Blame, AFaultThatHasDecayedIsForgiven) {
  BlameBook book;
  LayFault("w", Fault(kStart), kLimits, 0, &book);
  EXPECT_EQ(StandingOf(book, "w", 0, kStart + kHalfLife, kHalfLife), Standing::kSuspect);
  EXPECT_EQ(StandingOf(book, "w", 0, kStart + 3 * kHalfLife, kHalfLife), Standing::kClean);
  EXPECT_FALSE(HasDecayed(book["w"], kStart + 3 * kHalfLife, kHalfLife));
  EXPECT_TRUE(HasDecayed(book["w"], kStart + 7 * kHalfLife, kHalfLife));
}

TEST(Blame, ABurnInTriesTheFoldersOfFaultsThatHaveNotDecayed) {
  BlameBook book;
  HostFault fault = Fault(kStart);
  fault.folder = "/ck";
  LayFault("w", fault, kLimits, 0, &book);
  LayFault("w", Fault(kStart), kLimits, 0, &book);
  EXPECT_THAT(FoldersToTry(book["w"], kStart + 3 * kHalfLife, kHalfLife), ElementsAre("/ck"));
  EXPECT_THAT(FoldersToTry(book["w"], kStart + 7 * kHalfLife, kHalfLife), IsEmpty())
      << "a folder that was removed must not keep a host aside for ever";
}

TEST(Blame, FaultsOfOneDeviceSetItAsideAloneAndOfSeveralTheirHostToo) {
  BlameBook book;
  LayFault("w", Fault(kStart, 1), kLimits, 0, &book);
  EXPECT_THAT(LayFault("w", Fault(kStart, 1), kLimits, 0, &book), ElementsAre("device 1 of w"));
  EXPECT_EQ(StandingOf(book, "w", 1, kStart, kHalfLife), Standing::kSetAside);
  EXPECT_EQ(StandingOf(book, "w", 0, kStart, kHalfLife), Standing::kSuspect);
  EXPECT_THAT(LayFault("w", Fault(kStart, 0), kLimits, 0, &book), ElementsAre("w"));
}

TEST(Blame, StatesWhyAndWhenItIsTriedAgain) {
  BlameBook book;
  LayFault("w", Fault(kStart), kLimits, 0, &book);
  LayFault("w", Fault(kStart, kWholeHost, "b"), kLimits, 1000, &book);
  ASSERT_EQ(book["w"].set_aside.size(), 1u);
  const SetAside& part = book["w"].set_aside[0];
  EXPECT_EQ(part.reason, "RANK_CRASHED (job b); RANK_CRASHED (job a)");
  EXPECT_EQ(part.since_wall_ns, 1000);
  EXPECT_EQ(part.burn_in_time, kStart + kLimits.set_aside);
  EXPECT_EQ(part.burn_in_wall_ns, 1000 + int64_t{300} * 1'000'000'000);
}

TEST(Blame, AHostThatFailsAgainAfterASoundBurnInIsSetAsideForLonger) {
  BlameBook book;
  for (int i = 0; i < 2; ++i) LayFault("w", Fault(kStart), kLimits, 0, &book);
  LiftSetAside(&book["w"]);
  EXPECT_EQ(StandingOf(book, "w", 0, kStart, kHalfLife), Standing::kSuspect);
  EXPECT_THAT(LayFault("w", Fault(kStart), kLimits, 0, &book), ElementsAre("w"));
  EXPECT_EQ(book["w"].set_aside[0].wait, 2 * kLimits.set_aside);
  PostponeBurnIn("cpu: element 3 is 1", kLimits, kStart, 0, &book["w"]);
  EXPECT_EQ(book["w"].set_aside[0].wait, 4 * kLimits.set_aside);
  EXPECT_THAT(book["w"].set_aside[0].reason, HasSubstr("element 3"));
  for (int i = 0; i < 20; ++i) PostponeBurnIn("", kLimits, kStart, 0, &book["w"]);
  EXPECT_EQ(book["w"].set_aside[0].wait, kLimits.set_aside_limit);
}

TEST(Blame, FaultsThatWereTheJobsOwnAreWithdrawn) {
  BlameBook book;
  LayFault("u", Fault(kStart, kWholeHost, "bad"), kLimits, 0, &book);
  LayFault("u", Fault(kStart, kWholeHost, "bad"), kLimits, 0, &book);
  for (int i = 0; i < 2; ++i) LayFault("v", Fault(kStart, kWholeHost, "other"), kLimits, 0, &book);
  LayFault("v", Fault(kStart, kWholeHost, "bad"), kLimits, 0, &book);
  EXPECT_THAT(WithdrawFaults("bad", kLimits, kStart, &book), ElementsAre("u", "v"));
  EXPECT_EQ(StandingOf(book, "u", 0, kStart, kHalfLife), Standing::kClean);
  EXPECT_EQ(StandingOf(book, "v", 0, kStart, kHalfLife), Standing::kSetAside);
}

TEST(Blame, SurvivesTheCatalog) {
  BlameBook book;
  LayFault("w", Fault(kStart, 1), kLimits, 5, &book);
  LayFault("w", Fault(kStart + kHalfLife, 1), kLimits, 5, &book);
  const MonotonicTime now = kStart + kHalfLife;
  const v1::BlameRecord record = ToRecord("w", book["w"], now, kHalfLife);
  const MonotonicTime later = kStart + 100 * kHalfLife;  // the clock of another process
  const HostBlame read = FromRecord(record, later);
  EXPECT_NEAR(WeightOf(read, 1, later, kHalfLife), 1.5, 1e-9);
  ASSERT_EQ(read.set_aside.size(), 1u);
  EXPECT_EQ(read.set_aside[0].burn_in_time, later + kLimits.set_aside);
  EXPECT_EQ(ToRecord("w", read, later, kHalfLife).SerializeAsString(), record.SerializeAsString());
}

TEST(Preference, CleanDevicesComeFirstThenSuspectsThenTheLeastBlamedOfThoseSetAside) {
  BlameBook book;
  LayFault("suspect", Fault(kStart), kLimits, 0, &book);
  for (int i = 0; i < 2; ++i) LayFault("aside", Fault(kStart), kLimits, 0, &book);
  for (int i = 0; i < 3; ++i) LayFault("aside-more", Fault(kStart), kLimits, 0, &book);
  const ClusterView view = FreeDevices({"aside-more", "aside", "clean", "suspect"});
  const auto views = [&](int ranks) {
    return ViewsByPreference(view, ranks, book, kStart, kHalfLife);
  };
  EXPECT_THAT(WorkersOf(views(1)[0]), ElementsAre("clean"));
  EXPECT_THAT(WorkersOf(views(2)[0]), ElementsAre("clean", "suspect"));
  EXPECT_THAT(WorkersOf(views(3)[0]), ElementsAre("clean", "suspect", "aside"));
  EXPECT_EQ(views(4).size(), 1u);
  for (int ranks = 1; ranks <= 5; ++ranks) {
    EXPECT_EQ(views(ranks).back().free_devices.size(), 4u) << "never starves";
  }
  Fleet fleet;
  fleet.blame = book;
  EXPECT_THAT(WorkersOf(WithoutSetAside(view, fleet)), ElementsAre("clean", "suspect"));
  fleet.leases[{"aside", 0}];
  EXPECT_THAT(WorkersOf(WithoutSetAside(view, fleet)), ElementsAre("aside", "clean", "suspect"));
}

TEST(Preference, OfEquallyBlamedDevicesNoMoreThanNeededComeFirst) {
  BlameBook book;
  for (const char* worker : {"bad-0", "bad-1"}) LayFault(worker, Fault(kStart), kLimits, 0, &book);
  const auto views =
      ViewsByPreference(FreeDevices({"bad-0", "bad-1", "clean"}), 2, book, kStart, kHalfLife);
  ASSERT_EQ(views.size(), 2u);
  EXPECT_THAT(WorkersOf(views[0]), ElementsAre("clean", "bad-0"));
  EXPECT_EQ(views[1].free_devices.size(), 3u);
}

}  // namespace
}  // namespace troupe
