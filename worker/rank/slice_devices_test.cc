#include "worker/rank/slice_devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace troupe {
namespace {

using kernels::xla::DeviceFacts;
using testing::ElementsAre;

// Ranks 0 to 3 of a job of two stages with two ranks each; the second stage is the process numbers
// 0 and 1 of a slice of 1x2 chips.
v1::Plan TwoStages() {
  v1::Plan plan;
  for (int rank = 0; rank < 4; ++rank) {
    v1::RankPlacement& placement = *plan.add_ranks();
    placement.set_rank(rank);
    placement.mutable_coordinates()->set_pipe(rank / 2);
    v1::SliceProcess& process = *placement.mutable_slice_process();
    for (const int extent : {1, 2, 1}) process.add_bounds(extent);
    process.set_task(rank % 2);
  }
  return plan;
}

v1::RankDevice Device(int id, std::array<int, 3> coordinates) {
  v1::RankDevice device;
  device.set_id(id);
  device.mutable_coordinates()->Assign(coordinates.begin(), coordinates.end());
  return device;
}

DeviceFacts Facts(int id, bool addressable) {
  return {.kind = "TPU", .id = id, .coordinates = {5, id}, .addressable = addressable};
}

TEST(SliceDevices, AreThoseOfTheRanksOfAStage) {
  EXPECT_THAT(RanksOfStage(TwoStages(), 0), ElementsAre(0, 1));
  EXPECT_THAT(RanksOfStage(TwoStages(), 3), ElementsAre(2, 3));
}

TEST(SliceDevices, OfAProcessIsOne) {
  const auto own = OwnDevice(std::vector{Facts(7, false), Facts(9, true)}, 2);
  ASSERT_TRUE(own.ok()) << own.status();
  EXPECT_EQ(own->id(), 9);
  EXPECT_THAT(own->coordinates(), ElementsAre(5, 9));
  EXPECT_EQ(OwnDevice(std::vector{Facts(7, true), Facts(9, true)}, 2).status(),
            FailedPrecondition("the process of a rank has 2 devices of its slice, not one"));
  EXPECT_EQ(OwnDevice(std::vector{Facts(7, true)}, 2).status(),
            FailedPrecondition("the plugin has 1 devices in the slice of a stage of 2 ranks"));
  DeviceFacts boundless = Facts(7, true);
  boundless.coordinates = {0, 1, 2, 3};
  EXPECT_EQ(OwnDevice(std::vector{boundless}, 1).status(),
            FailedPrecondition("the plugin states 4 coordinates for a chip, which has at most 3"));
}

TEST(SliceDevices, AreFoundByTheIdsThatTheRanksSent) {
  const std::vector facts = {Facts(7, false), Facts(9, true)};
  const std::vector ranks = {2, 3};
  std::vector book = {Device(1, {}), Device(2, {}), Device(9, {}), Device(7, {})};
  const auto found = DevicesOfRanks(facts, book, ranks);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_THAT(*found, ElementsAre(1, 0));
  book[2].set_id(7);
  EXPECT_EQ(DevicesOfRanks(facts, book, ranks).status(),
            FailedPrecondition("ranks 2 and 3 both have device 7 of their slice"));
  book[2].set_id(8);
  EXPECT_EQ(DevicesOfRanks(facts, book, ranks).status(),
            FailedPrecondition("rank 2 has device 8, which is not in the slice of this rank"));
  book.resize(3);
  book[2].set_id(9);
  EXPECT_EQ(DevicesOfRanks(facts, book, ranks).status(),
            FailedPrecondition("rank 3 has no device among the 3 of the job"));
}

TEST(SliceDevices, ThatAreNotWhereThePlanHasThemAreNamed) {
  const std::vector ranks = {2, 3};
  const auto misplaced = [&](std::array<int, 3> of_2, std::array<int, 3> of_3) {
    return MisplacedChips(
        TwoStages(), std::vector{Device(0, {}), Device(1, {}), Device(2, of_2), Device(3, of_3)},
        ranks);
  };
  EXPECT_EQ(misplaced({4, 6, 0}, {4, 7, 0}), "");  // a part of a larger slice
  EXPECT_EQ(misplaced({4, 7, 0}, {4, 6, 0}),
            "chips of this slice: rank 2 has the chip at 0,1,0 of its slice, the plan that of "
            "process 0 in "
            "1x2x1: neighbouring ranks may have distant chips");
  EXPECT_EQ(misplaced({0, 0, 0}, {1, 0, 0}),
            "chips of this slice: rank 3 has the chip at 1,0,0 of its slice, the plan that of "
            "process 1 in "
            "1x2x1: neighbouring ranks may have distant chips");
}

}  // namespace
}  // namespace troupe
