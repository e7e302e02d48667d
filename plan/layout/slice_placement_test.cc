#include "plan/layout/slice_placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "plan/layout/placement.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// The chips of hosts of 2x2 chips, all of one slice.
ClusterView Slice(int x_hosts, int y_hosts, const std::string& name = "s") {
  ClusterView cluster;
  for (int y = 0; y < 2 * y_hosts; ++y) {
    for (int x = 0; x < 2 * x_hosts; ++x) {
      ClusterDevice& device = cluster.free_devices.emplace_back();
      device.worker = fmt::format("{}-{}-{}", name, x / 2, y / 2);
      device.device.set_index(x % 2 + 2 * (y % 2));
      device.device.mutable_kind()->set_kind("xla");
      v1::TpuChip& chip = *device.device.mutable_chip();
      chip.set_slice(name);
      chip.set_address(fmt::format("{}:{}", device.worker, 8476 + device.device.index()));
      for (const int at : {x, y, 0}) chip.add_position(at);
      for (const int extent : {2, 2, 1}) chip.add_host_chips(extent);
    }
  }
  return cluster;
}

std::vector<const ClusterDevice*> ChipsOf(const ClusterView& cluster) {
  std::vector<const ClusterDevice*> chips;
  for (const ClusterDevice& device : cluster.free_devices) chips.push_back(&device);
  return chips;
}

// "2x2x1: 0,0 1,0 1,1 0,1": a stage's chips by rank.
std::string TextOf(const StageSlice& stage) {
  std::string text = fmt::format("{}:", fmt::join(stage.bounds, "x"));
  for (const ClusterDevice* const chip : stage.chips) {
    text += fmt::format(" {},{}", chip->device.chip().position(0), chip->device.chip().position(1));
  }
  return text;
}

std::vector<std::string> TextsOf(const StatusOr<std::vector<StageSlice>>& stages) {
  if (!stages.ok()) return {ToString(stages.status())};
  std::vector<std::string> texts;
  for (const StageSlice& stage : *stages) texts.push_back(TextOf(stage));
  return texts;
}

TEST(SlicePlacement, RectanglesArePowersOfTwoAndTheMostSquareComeFirst) {
  EXPECT_THAT(RectanglesOf(1), ElementsAre(TpuBounds{1, 1, 1}));
  EXPECT_THAT(RectanglesOf(2),
              ElementsAre(TpuBounds{1, 1, 2}, TpuBounds{1, 2, 1}, TpuBounds{2, 1, 1}));
  EXPECT_EQ(RectanglesOf(8).front(), (TpuBounds{2, 2, 2}));
  EXPECT_TRUE(RectanglesOf(3).empty());
  EXPECT_TRUE(RectanglesOf(0).empty());
  EXPECT_TRUE(RectanglesOf(12).empty());
}

TEST(SlicePlacement, ConsecutiveRanksHaveNeighbouringChips) {
  const ClusterView cluster = Slice(2, 2);
  const auto stages = PlaceStages(ChipsOf(cluster), 1, 16);
  ASSERT_TRUE(stages.ok()) << stages.status();
  const StageSlice& stage = stages->front();
  EXPECT_EQ(stage.bounds, (TpuBounds{4, 4, 1}));
  for (size_t rank = 1; rank < stage.chips.size(); ++rank) {
    int links = 0;
    for (int axis = 0; axis < kTpuAxes; ++axis) {
      links += std::abs(stage.chips[rank]->device.chip().position(axis) -
                        stage.chips[rank - 1]->device.chip().position(axis));
    }
    EXPECT_EQ(links, 1) << "rank " << rank;
  }
  EXPECT_THAT(TextOf(stage), HasSubstr(": 0,0 1,0 2,0 3,0 3,1 2,1"));
}

TEST(SlicePlacement, StagesAreRectanglesOfTheirOwn) {
  const ClusterView cluster = Slice(2, 2);
  EXPECT_THAT(TextsOf(PlaceStages(ChipsOf(cluster), 4, 4)),
              ElementsAre("2x2x1: 0,0 1,0 1,1 0,1", "2x2x1: 0,2 1,2 1,3 0,3",
                          "2x2x1: 2,0 3,0 3,1 2,1", "2x2x1: 2,2 3,2 3,3 2,3"));
  EXPECT_THAT(TextsOf(PlaceStages(ChipsOf(cluster), 2, 8)),
              ElementsAre("2x4x1: 0,0 1,0 1,1 0,1 0,2 1,2 1,3 0,3",
                          "2x4x1: 2,0 3,0 3,1 2,1 2,2 3,2 3,3 2,3"));
  EXPECT_THAT(TextsOf(PlaceStages(ChipsOf(cluster), 1, 2)), ElementsAre("1x2x1: 0,0 0,1"));
}

// A rectangle of several hosts needs all of their chips.
TEST(SlicePlacement, AreWithinOneHostOrOfWholeHosts) {
  ClusterView cluster = Slice(2, 1);
  std::erase_if(cluster.free_devices, [](const ClusterDevice& device) {
    return device.device.chip().position(0) % 3 == 0;  // the outer columns
  });
  EXPECT_THAT(TextsOf(PlaceStages(ChipsOf(cluster), 2, 2)),
              ElementsAre("1x2x1: 1,0 1,1", "1x2x1: 2,0 2,1"));
  EXPECT_EQ(PlaceStages(ChipsOf(cluster), 1, 4).status(),
            FailedPrecondition(
                "pipeline stage 0 of 1 has 4 ranks, which need a rectangle of 4 free chips with a "
                "power of two of chips along each axis, within one host or of whole hosts: 4 chips "
                "are free in 1 slices"));
}

TEST(SlicePlacement, NumbersThatNoSliceHasAreRefused) {
  const ClusterView cluster = Slice(2, 2);
  EXPECT_EQ(PlaceStages(ChipsOf(cluster), 1, 6).status(),
            FailedPrecondition("a pipeline stage has 6 ranks, but on TPUs they are a slice, whose "
                               "number of chips is a power of two"));
}

TEST(SlicePlacement, AGangOfChipsHasAProcessForEachRank) {
  ClusterView cluster = Slice(1, 1, "a");
  for (ClusterDevice& device : Slice(2, 1, "b").free_devices)
    cluster.free_devices.push_back(std::move(device));
  v1::MeshDegrees mesh;
  mesh.set_pipe(2);
  mesh.set_data_replicate(1);
  mesh.set_data_shard(2);
  mesh.set_context(1);
  mesh.set_expert(1);
  mesh.set_tensor(2);
  const auto gang = PlaceGang(mesh, "xla", cluster, nullptr);
  ASSERT_TRUE(gang.ok()) << gang.status();
  ASSERT_EQ(gang->ranks.size(), 8u);
  // The larger slice has room for both stages.
  const v1::RankPlacement& rank = gang->ranks[6];
  EXPECT_EQ(rank.worker(), "b-1-0");
  EXPECT_EQ(rank.island(), "slice:b");
  EXPECT_EQ(rank.device(), 3);
  EXPECT_EQ(rank.slice_process().task(), 3);
  EXPECT_EQ(rank.slice_process().address(), "b-1-0:8479");
  EXPECT_THAT(rank.slice_process().bounds(), ElementsAre(2, 2, 1));
  EXPECT_THAT(rank.slice_process().host_bounds(), ElementsAre(2, 2, 1));
}

TEST(SlicePlacement, ImaginedSlicesHaveEveryChip) {
  const auto cluster = ImaginedSlice(*FindTpuModel("TPU v6 lite"), 12);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  EXPECT_EQ(cluster->free_devices.size(), 16u);
  EXPECT_THAT(cluster->free_devices.back().device.chip().position(), ElementsAre(3, 3, 0));
}

TEST(SlicePlacement, ChipsWithoutAPlaceAreRefused) {
  v1::TpuChip chip = Slice(1, 1).free_devices[0].device.chip();
  EXPECT_EQ(CheckTpuChip(chip), OkStatus());
  chip.set_position(1, -1);
  EXPECT_EQ(CheckTpuChip(chip), InvalidArgument("position[1] is -1, not from 0 to 1023"));
  chip.set_position(1, 0);
  chip.set_host_chips(0, 3);
  EXPECT_EQ(CheckTpuChip(chip), InvalidArgument("host_chips[0] is 3, not a power of two up to "
                                                "1024"));
  chip.add_host_chips(1);
  EXPECT_EQ(CheckTpuChip(chip),
            InvalidArgument("position has 3 numbers and host_chips 4, not 3 each"));
  chip = Slice(1, 1).free_devices[0].device.chip();
  for (const auto& [address, refusal] :
       {std::pair("", "address  is not HOST:PORT, with a port from 1 to 65535"),
        std::pair("a:1,b:2", "address a:1,b:2 has a comma")}) {
    chip.set_address(address);
    EXPECT_EQ(CheckTpuChip(chip), InvalidArgument("{}", refusal));
  }
}

}  // namespace
}  // namespace troupe
