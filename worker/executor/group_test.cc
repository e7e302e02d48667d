#include "worker/executor/group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using model::Axis;
using model::CollectiveGroup;
using ::testing::ElementsAre;

// data 2 × tensor 2 × pipe 3: rank = (pipe · 2 + data) · 2 + tensor.
GroupMesh TheMesh() {
  model::PerAxis degrees;
  degrees[Axis::kPipe] = 3;
  degrees[Axis::kDataReplicate] = 2;
  degrees[Axis::kTensor] = 2;
  return {Mesh(degrees), 0, 2};
}

TEST(Groups, AnAxisGroupHoldsTheRanksThatDifferAlongItOnly) {
  EXPECT_THAT(RanksOfGroup(TheMesh(), 7, model::GroupOf(Axis::kTensor)), ElementsAre(6, 7));
  EXPECT_THAT(RanksOfGroup(TheMesh(), 7, model::GroupOf(Axis::kDataReplicate)), ElementsAre(5, 7));
}

TEST(Groups, SeveralAxesFlattenInRankOrder) {
  CollectiveGroup group = model::GroupOf(Axis::kTensor);
  group.axes |= model::GroupOf(Axis::kDataReplicate).axes;
  EXPECT_THAT(RanksOfGroup(TheMesh(), 6, group), ElementsAre(4, 5, 6, 7));
  EXPECT_EQ(AxisText(TheMesh(), group), "data_replicate+tensor");
  group.axes |= model::GroupOf(Axis::kDataShard).axes;
  EXPECT_EQ(AxisText(TheMesh(), group), "data_replicate+tensor");
}

TEST(Groups, OwnersAreTheFirstAndLastStageAtTheSameOtherCoordinates) {
  const CollectiveGroup owners{CollectiveGroup::Kind::kOwners, 0};
  EXPECT_THAT(RanksOfGroup(TheMesh(), 1, owners), ElementsAre(1, 9));
  EXPECT_THAT(RanksOfGroup(TheMesh(), 9, owners), ElementsAre(1, 9));
}

TEST(Groups, AllIsEveryRank) {
  EXPECT_EQ(RanksOfGroup(TheMesh(), 5, {CollectiveGroup::Kind::kAll, 0}).size(), 12u);
}

}  // namespace
}  // namespace troupe
