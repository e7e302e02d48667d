#include "plan/layout/mesh.h"

#include <gtest/gtest.h>

#include <set>

#include "plan/validate/batch.h"

namespace troupe {
namespace {

using model::Axis;
using model::PerAxis;

TEST(MeshTest, TensorRunsFastestAndPipeSlowest) {
  const Mesh mesh(PerAxis{{2, 2, 1, 1, 1, 2}});
  EXPECT_EQ(mesh.ranks(), 8);
  EXPECT_EQ(mesh.CoordinatesOf(1).of, (std::array<int32_t, 6>{0, 0, 0, 0, 0, 1}));
  EXPECT_EQ(mesh.CoordinatesOf(2).of, (std::array<int32_t, 6>{0, 1, 0, 0, 0, 0}));
  EXPECT_EQ(mesh.CoordinatesOf(4).of, (std::array<int32_t, 6>{1, 0, 0, 0, 0, 0}));
}

TEST(MeshTest, RanksAndCoordinatesAreInverse) {
  const Mesh mesh(PerAxis{{3, 2, 2, 1, 2, 5}});
  for (int rank = 0; rank < mesh.ranks(); ++rank) {
    EXPECT_EQ(mesh.RankOf(mesh.CoordinatesOf(rank)), rank);
  }
}

TEST(MeshTest, GroupsDifferInTheirAxesAlone) {
  const Mesh mesh(PerAxis{{2, 2, 1, 1, 1, 2}});
  EXPECT_EQ(mesh.GroupOf(5, Axis::kTensor), (std::vector<int>{4, 5}));
  EXPECT_EQ(mesh.GroupOf(5, Axis::kPipe), (std::vector<int>{1, 5}));
  EXPECT_EQ(mesh.GroupOf(5, Axis::kDataReplicate), (std::vector<int>{5, 7}));
  EXPECT_EQ(mesh.GroupOf(5, Axis::kContext), (std::vector<int>{5}));
  const unsigned pipe_and_tensor =
      1u << static_cast<int>(Axis::kPipe) | 1u << static_cast<int>(Axis::kTensor);
  EXPECT_EQ(mesh.GroupOf(3, pipe_and_tensor), (std::vector<int>{2, 3, 6, 7}));
}

TEST(MeshTest, DataRanksOwnEverySlotOfTheBatchOnceInOrder) {
  const Mesh mesh(PerAxis{{2, 3, 1, 1, 1, 2}});
  const BatchGeometry batch{.global_batch_size = 24,
                            .micro_batch_size = 2,
                            .sequence_length = 8,
                            .data_ranks = mesh.data_ranks()};
  EXPECT_EQ(batch.microbatches(), 4);
  int64_t expected = 0;
  for (int data_rank = 0; data_rank < mesh.data_ranks(); ++data_rank) {
    for (int m = 0; m < batch.microbatches(); ++m) {
      EXPECT_EQ(batch.FirstSlot(data_rank, m), expected);
      expected += batch.micro_batch_size;
    }
  }
  EXPECT_EQ(expected, 24);
  std::set<int> data_ranks;
  for (int rank = 0; rank < mesh.ranks(); ++rank) data_ranks.insert(mesh.DataRankOf(rank));
  EXPECT_EQ(data_ranks, (std::set<int>{0, 1, 2}));
  EXPECT_EQ(mesh.DataRankOf(2), 1);
}

}  // namespace
}  // namespace troupe
