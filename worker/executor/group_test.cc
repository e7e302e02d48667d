#include "worker/executor/group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using model::Axis;
using model::CollectiveGroup;
using model::CollectivePurpose;
using ::testing::ElementsAre;

// Mesh data 2 × tensor 2 × pipe 3: rank = (pipe · 2 + data) · 2 + tensor.
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

// Mesh data_shard 4 × expert 2 × tensor 2: rank = (shard · 2 + expert) · 2 + tensor.
TEST(Groups, OfARunAndAcrossRunsAreParts) {
  model::PerAxis degrees;
  degrees[Axis::kDataShard] = 4;
  degrees[Axis::kExpert] = 2;
  degrees[Axis::kTensor] = 2;
  const GroupMesh mesh = {Mesh(degrees), 0, 0};
  CollectiveGroup shards = model::GroupOf(Axis::kDataShard);
  EXPECT_THAT(RanksOfGroup(mesh, 13, model::WithinRun(shards, 2)), ElementsAre(9, 13));
  EXPECT_THAT(RanksOfGroup(mesh, 13, model::AcrossRuns(shards, 2)), ElementsAre(5, 13));
  EXPECT_EQ(AxisText(mesh, model::AcrossRuns(shards, 2)), "data_shard_across_2");
  shards.axes |= model::GroupOf(Axis::kExpert).axes;
  EXPECT_THAT(RanksOfGroup(mesh, 13, model::WithinRun(shards, 2)), ElementsAre(9, 11, 13, 15));
  EXPECT_EQ(AxisText(mesh, model::WithinRun(shards, 2)), "data_shard_within_2+expert");
}

TEST(Groups, PartsOfAnAxisAreGroupsOfTheirOwn) {
  model::Program program;
  program.chunks.resize(1);
  program.ops.resize(1);
  program.ops[0].resize(model::kNumPieces);
  const CollectiveGroup shards = model::GroupOf(Axis::kDataShard);
  for (const CollectiveGroup& group :
       {shards, model::WithinRun(shards, 2), model::AcrossRuns(shards, 2), shards}) {
    program.update.push_back(
        {.kind = model::OpKind::kAllGather,
         .attributes = model::AllGatherAttributes{{group, CollectivePurpose::kUnshard}}});
  }
  EXPECT_EQ(GroupsOf(program).size(), 3u);
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
