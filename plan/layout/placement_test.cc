#include "plan/layout/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace troupe {
namespace {

using ::testing::HasSubstr;

ClusterDevice Device(const std::string& worker, int index, const std::string& island = "",
                     const std::string& versions = "v1") {
  ClusterDevice device{.worker = worker, .host = "host-of-" + worker, .island = island};
  device.device.set_index(index);
  device.device.set_cores(4);
  device.device.mutable_kind()->set_kind("cpu");
  device.device.mutable_kind()->set_model("M");
  device.device.mutable_kind()->set_versions(versions);
  return device;
}

v1::MeshDegrees MeshOf(int pipe, int data, int tensor) {
  v1::MeshDegrees mesh;
  mesh.set_pipe(pipe);
  mesh.set_data_replicate(data);
  mesh.set_data_shard(1);
  mesh.set_context(1);
  mesh.set_expert(1);
  mesh.set_tensor(tensor);
  return mesh;
}

// "0:a.0 1:a.1": the worker and device of each rank.
std::string TextOf(const StatusOr<GangPlacement>& placement) {
  if (!placement.ok()) return ToString(placement.status());
  std::string text;
  for (const auto& rank : placement->ranks) {
    text += fmt::format("{}{}:{}.{}", text.empty() ? "" : " ", rank.rank(), rank.worker(),
                        rank.device());
  }
  return text;
}

TEST(PlacementTest, OneRankAWorkerIsGolden) {
  const ClusterView cluster{{Device("w3", 0), Device("w1", 0), Device("w0", 0), Device("w2", 0)}};
  EXPECT_EQ(TextOf(PlaceGang(MeshOf(2, 1, 2), "cpu", cluster, nullptr)),
            "0:w0.0 1:w1.0 2:w2.0 3:w3.0");
}

TEST(PlacementTest, TensorGroupsStayInsideAnIslandThatHasRoom) {
  // Island x has three devices, y two, z two: three tensor pairs fit, none across islands.
  const ClusterView cluster{{Device("a", 0, "x"), Device("b", 0, "y"), Device("c", 0, "x"),
                             Device("d", 0, "y"), Device("e", 0, "x"), Device("f", 0, "z"),
                             Device("g", 0, "z")}};
  const auto placement = PlaceGang(MeshOf(3, 1, 2), "cpu", cluster, nullptr);
  EXPECT_EQ(TextOf(placement), "0:a.0 1:c.0 2:b.0 3:d.0 4:f.0 5:g.0");
  EXPECT_TRUE(placement->warnings.empty());
  EXPECT_EQ(placement->ranks[2].island(), "y");
}

TEST(PlacementTest, AGangTakesTheFewestIslands) {
  const ClusterView cluster{{Device("a", 0, "x"), Device("a", 1, "x"), Device("b", 0, "y"),
                             Device("b", 1, "y"), Device("b", 2, "y"), Device("b", 3, "y")}};
  EXPECT_EQ(TextOf(PlaceGang(MeshOf(2, 1, 2), "cpu", cluster, nullptr)), "0:b.0 1:b.1 2:b.2 3:b.3");
}

TEST(PlacementTest, RanksSpreadOverTheWorkersOfAnIsland) {
  const ClusterView cluster{
      {Device("a", 0, "x"), Device("a", 1, "x"), Device("b", 0, "x"), Device("b", 1, "x")}};
  EXPECT_EQ(TextOf(PlaceGang(MeshOf(1, 2, 1), "cpu", cluster, nullptr)), "0:a.0 1:b.0");
  EXPECT_EQ(TextOf(PlaceGang(MeshOf(1, 3, 1), "cpu", cluster, nullptr)), "0:a.0 1:b.0 2:a.1");
}

TEST(PlacementTest, AGroupCrossesIslandsOnlyWhereNoneHasRoomAndReportsIt) {
  const ClusterView cluster{{Device("a", 0, "x"), Device("b", 0, "y")}};
  const auto placement = PlaceGang(MeshOf(1, 1, 2), "cpu", cluster, nullptr);
  EXPECT_EQ(TextOf(placement), "0:a.0 1:b.0");
  ASSERT_EQ(placement->warnings.size(), 1u);
  EXPECT_THAT(placement->warnings[0], HasSubstr("ranks 0-1 crosses islands"));
}

TEST(PlacementTest, AGangIsOfOneKindAndVersion) {
  const ClusterView cluster{{Device("a", 0, "", "v1"), Device("b", 0, "", "v2"),
                             Device("c", 0, "", "v2"), Device("d", 0, "", "v1"),
                             Device("e", 0, "", "v2")}};
  const auto placement = PlaceGang(MeshOf(2, 1, 1), "cpu", cluster, nullptr);
  EXPECT_EQ(TextOf(placement), "0:b.0 1:c.0");
  EXPECT_EQ(placement->device.versions(), "v2");
  const auto none = PlaceGang(MeshOf(2, 2, 1), "cpu", cluster, nullptr);
  EXPECT_EQ(none.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(TextOf(none), HasSubstr("needs 4 free devices of one kind, cpu; 3 are free"));
}

// A GPU on a worker with this version of NCCL.
ClusterDevice Gpu(const std::string& worker, const std::string& nccl) {
  ClusterDevice device = Device(worker, 0);
  device.device.mutable_kind()->set_kind("cuda");
  device.device.mutable_kind()->set_kernel_level("sm_90");
  device.device.mutable_kind()->set_nccl(nccl);
  return device;
}

TEST(PlacementTest, SeveralGpusHaveOneVersionOfNccl) {
  const ClusterView cluster{{Gpu("a", "2.27.3"), Gpu("b", "2.28.9"), Gpu("c", ""), Gpu("d", ""),
                             Gpu("e", ""), Gpu("f", "2.28.9")}};
  const auto two = PlaceGang(MeshOf(1, 2, 1), "cuda", cluster, nullptr);
  EXPECT_EQ(TextOf(two), "0:b.0 1:f.0");
  EXPECT_EQ(two->device.nccl(), "2.28.9");
  EXPECT_EQ(Message(PlaceGang(MeshOf(1, 3, 1), "cuda", cluster, nullptr).status()),
            "needs 3 free devices of one kind, cuda; 2 are free: 1 of cuda M (sm_90; v1; NCCL "
            "2.27.3), 2 of cuda M (sm_90; v1; NCCL "
            "2.28.9), 3 of cuda M (sm_90; v1; no NCCL)");
  const ClusterView without{{Gpu("c", ""), Gpu("d", "")}};
  EXPECT_EQ(Message(PlaceGang(MeshOf(1, 2, 1), "cuda", without, nullptr).status()),
            "needs 2 free devices of one kind, cuda; 0 are free: 2 of cuda M (sm_90; v1; no NCCL)");
}

TEST(PlacementTest, TheVersionOfNcclIsFrozenWithAGangOfSeveral) {
  ClusterView cluster{{Gpu("a", "2.28.9"), Gpu("b", "2.28.9")}};
  const v1::DeviceKind frozen = PlaceGang(MeshOf(1, 2, 1), "cuda", cluster, nullptr)->device;
  cluster = {{Gpu("a", "2.28.9"), Gpu("b", "2.29.0"), Gpu("c", "2.29.0")}};
  EXPECT_EQ(Message(PlaceGang(MeshOf(1, 2, 1), "cuda", cluster, &frozen).status()),
            "needs 2 free devices of one kind, cuda M (sm_90; v1; NCCL 2.28.9); 1 is free: 1 of "
            "cuda M (sm_90; v1; NCCL 2.28.9), 2 of "
            "cuda M (sm_90; v1; NCCL 2.29.0)");
  // A plan from before NCCL versions were recorded.
  v1::DeviceKind unsaid = frozen;
  unsaid.clear_nccl();
  EXPECT_EQ(TextOf(PlaceGang(MeshOf(1, 2, 1), "cuda", cluster, &unsaid)), "0:b.0 1:c.0");
}

TEST(PlacementTest, AGpuAloneNeedsNoNccl) {
  const ClusterView cluster{{Gpu("a", "")}};
  const auto alone = PlaceGang(MeshOf(1, 1, 1), "cuda", cluster, nullptr);
  EXPECT_EQ(TextOf(alone), "0:a.0");
  EXPECT_FALSE(alone->device.has_nccl());
  // A single GPU may even change to another version than the one it began with.
  v1::DeviceKind frozen = alone->device;
  EXPECT_EQ(TextOf(PlaceGang(MeshOf(1, 1, 1), "cuda", {{Gpu("b", "2.28.9")}}, &frozen)), "0:b.0");
  frozen.set_nccl("2.27.3");
  EXPECT_EQ(TextOf(PlaceGang(MeshOf(1, 1, 1), "cuda", {{Gpu("b", "2.28.9")}}, &frozen)), "0:b.0");
}

TEST(PlacementTest, AFrozenKindIsKept) {
  const ClusterView cluster{
      {Device("a", 0, "", "v1"), Device("b", 0, "", "v2"), Device("c", 0, "", "v2")}};
  v1::DeviceKind frozen = cluster.free_devices[0].device.kind();
  EXPECT_EQ(TextOf(PlaceGang(MeshOf(1, 1, 1), "cpu", cluster, &frozen)), "0:a.0");
  EXPECT_THAT(TextOf(PlaceGang(MeshOf(2, 1, 1), "cpu", cluster, &frozen)), HasSubstr("1 is free"));
  EXPECT_THAT(TextOf(PlaceGang(MeshOf(1, 1, 1), "cuda", cluster, nullptr)),
              HasSubstr("0 are free"));
}

TEST(PlacementTest, CoresOfAHostAreSharedByItsRanks) {
  ClusterView cluster{{Device("a", 0), Device("b", 0), Device("c", 0)}};
  for (auto& device : cluster.free_devices) device.host = "one";
  EXPECT_EQ(PlaceGang(MeshOf(1, 1, 1), "cpu", cluster, nullptr)->threads_per_rank, 4);
  EXPECT_EQ(PlaceGang(MeshOf(2, 1, 1), "cpu", cluster, nullptr)->threads_per_rank, 2);
  EXPECT_EQ(PlaceGang(MeshOf(3, 1, 1), "cpu", cluster, nullptr)->threads_per_rank, 1);
}

TEST(PlacementTest, RunsOfShardsStayInsideAnIslandThatHasRoom) {
  // Island x has three devices, y and z two: filled one after another, a pair of shards would cross
  // islands.
  const ClusterView cluster{{Device("a", 0, "x"), Device("b", 0, "x"), Device("c", 0, "x"),
                             Device("d", 0, "y"), Device("e", 0, "y"), Device("f", 0, "z"),
                             Device("g", 0, "z")}};
  v1::MeshDegrees mesh = MeshOf(1, 1, 1);
  mesh.set_data_shard(6);
  EXPECT_EQ(TextOf(PlaceGang(mesh, "cpu", cluster, nullptr)),
            "0:a.0 1:b.0 2:c.0 3:d.0 4:e.0 5:f.0");
  const auto pairs = PlaceGang(mesh, "cpu", cluster, nullptr, 2);
  EXPECT_EQ(TextOf(pairs), "0:a.0 1:b.0 2:d.0 3:e.0 4:f.0 5:g.0");
  EXPECT_TRUE(pairs->warnings.empty());
  const auto threes = PlaceGang(mesh, "cpu", cluster, nullptr, 3);
  EXPECT_EQ(TextOf(threes), "0:a.0 1:b.0 2:c.0 3:d.0 4:e.0 5:f.0");
  ASSERT_EQ(threes->warnings.size(), 1u);
  EXPECT_EQ(threes->warnings[0],
            "the run of data_shard of ranks 3-5 crosses islands: no island has 3 free devices");
}

TEST(PlacementTest, TheOrderInWhichDevicesAreListedDoesNotMatter) {
  ClusterView cluster;
  for (int i = 0; i < 6; ++i) {
    cluster.free_devices.push_back(Device(fmt::format("w{}", i), 0, i < 3 ? "x" : "y"));
  }
  const std::string once = TextOf(PlaceGang(MeshOf(2, 1, 2), "cpu", cluster, nullptr));
  std::reverse(cluster.free_devices.begin(), cluster.free_devices.end());
  EXPECT_EQ(TextOf(PlaceGang(MeshOf(2, 1, 2), "cpu", cluster, nullptr)), once);
}

}  // namespace
}  // namespace troupe
