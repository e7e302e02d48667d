#include "cli/compile/stage_slice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace troupe {
namespace {

using kernels::xla::DeviceFacts;
using testing::ElementsAre;

// The devices of a topology, as libtpu numbers them: x varies fastest.
std::vector<DeviceFacts> Topology(const TpuBounds& bounds, int devices_per_chip) {
  std::vector<DeviceFacts> devices;
  for (int z = 0; z < bounds[2]; ++z) {
    for (int y = 0; y < bounds[1]; ++y) {
      for (int x = 0; x < bounds[0]; ++x) {
        for (int device = 0; device < devices_per_chip; ++device) {
          const auto id = static_cast<int>(devices.size());
          devices.push_back({.kind = "TPU", .id = id, .coordinates = {x, y, z}});
        }
      }
    }
  }
  return devices;
}

v1::Plan PlanOf(int stages, int ranks_of_stage) {
  v1::Plan plan;
  for (int rank = 0; rank < stages * ranks_of_stage; ++rank)
    plan.add_ranks()->mutable_coordinates()->set_pipe(rank / ranks_of_stage);
  return plan;
}

TEST(StageSlice, HasTheDevicesOfThePlanInTheOrderOfItsRanks) {
  v1::Plan plan = PlanOf(2, 4);
  const std::vector tasks = {0, 1, 3, 2};  // a snake
  for (int rank = 0; rank < 4; ++rank) {
    v1::SliceProcess& process = *plan.mutable_ranks(4 + rank)->mutable_slice_process();
    for (const int extent : {2, 2, 1}) process.add_bounds(extent);
    process.set_task(tasks[static_cast<size_t>(rank)]);
  }
  const TpuModel& v6e = *FindTpuModel("TPU v6 lite");
  const auto stage = FindChips(plan, 1, v6e);
  ASSERT_TRUE(stage.ok()) << stage.status();
  EXPECT_EQ(TopologyOf(*stage, v6e), "v6e:2x2");
  const auto devices = DevicesOf(*stage, Topology({2, 2, 1}, 1));
  ASSERT_TRUE(devices.ok()) << devices.status();
  EXPECT_THAT(*devices, ElementsAre(0, 1, 3, 2));
  EXPECT_EQ(DevicesOf(*stage, Topology({1, 2, 1}, 1)).status(),
            FailedPrecondition("the topology has no device 0 at 1,0,0"));
}

TEST(StageSlice, HasAllDevicesOfItsChips) {
  const TpuModel& tpu7x = *FindTpuModel("TPU7x");
  const auto of_ranks = [&](int ranks) { return FindChips(PlanOf(2, ranks), 1, tpu7x).value(); };
  EXPECT_EQ(TopologyOf(of_ranks(1), tpu7x), "tpu7x:1x1x1");
  EXPECT_THAT(DevicesOf(of_ranks(1), Topology({1, 1, 1}, 2)).value(), ElementsAre(0));
  EXPECT_EQ(TopologyOf(of_ranks(4), tpu7x), "tpu7x:1x2x1");
  EXPECT_THAT(DevicesOf(of_ranks(4), Topology({1, 2, 1}, 2)).value(), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(TopologyOf(of_ranks(8), tpu7x), "tpu7x:2x2x1");
  EXPECT_THAT(DevicesOf(of_ranks(8), Topology({2, 2, 1}, 2)).value(),
              ElementsAre(0, 1, 2, 3, 6, 7, 4, 5));
}

}  // namespace
}  // namespace troupe
