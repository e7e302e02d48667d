#include "kernels/xla/runtime/segment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kernels/backend/plain_program.h"

namespace troupe::kernels::xla {
namespace {

using model::Axis;
using model::DType;
using model::OpKind;
using model::Piece;
using testing::HasSubstr;
using testing::Not;

// The embedding of two ids in the rows of a table that a tensor rank has.
model::Program EmbeddingOf(int rank, int ranks, int64_t first, int64_t rows) {
  model::Program program = PlainProgram();
  program.mesh.degrees[Axis::kTensor] = ranks;
  program.mesh.coordinates[Axis::kTensor] = rank;
  const auto ids = AddPlainValue(program, DType::kInt32, {2}, "ids");
  const auto table = AddPlainValue(program, DType::kFloat32, {rows, 3}, "table");
  const auto y = AddPlainValue(program, DType::kFloat32, {2, 3}, "y");
  AddPlainOp(program,
             {OpKind::kEmbedding, model::VocabAttributes{first, rows, 9}, {ids, table}, {y}});
  return program;
}

std::string TextOf(const std::vector<model::Program>& programs) {
  std::vector<const model::Program*> pointers;
  for (const model::Program& program : programs) pointers.push_back(&program);
  const auto stage = StagePrograms::Make(pointers);
  EXPECT_TRUE(stage.ok()) << stage.status();
  const StageOps& ops = stage->Ops(0, Piece::kForward);
  const auto segment =
      WriteSegment(*stage, PlainPlan(programs[0]), {ops, 0, ops.size(), false, {}});
  EXPECT_TRUE(segment.ok()) << segment.status();
  return segment.ok() ? segment->module : "";
}

TEST(Segment, OfOneRankHasItsOwnNumbers) {
  const std::string text = TextOf({EmbeddingOf(0, 1, 5, 4)});
  EXPECT_THAT(text, HasSubstr("dense<5> : tensor<i32>"));
  EXPECT_THAT(text, Not(HasSubstr("sdy.")));
  EXPECT_THAT(text, Not(HasSubstr("partition_id")));
}

TEST(Segment, TakesTheMemoryOfAResultThatIsKeptAndOfNoTemporaryOne) {
  const model::Program program = EmbeddingOf(0, 1, 0, 4);
  const auto stage = StagePrograms::Make({&program});
  ASSERT_TRUE(stage.ok()) << stage.status();
  const StageOps& ops = stage->Ops(0, Piece::kForward);
  const model::ValueId y = 2;
  model::MemoryPlan plan = PlainPlan(program);
  const auto kept = WriteSegment(*stage, plan, {ops, 0, ops.size(), false, {}});
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_EQ(kept->first_unread, 2u);
  ASSERT_EQ(kept->arguments.size(), 3u);
  EXPECT_EQ(kept->arguments[2], y);
  EXPECT_EQ(kept->aliases, std::vector<int>{2});
  plan.locations[y].region = model::Region::kTemporary;
  const auto temporary = WriteSegment(*stage, plan, {ops, 0, ops.size(), false, {}});
  ASSERT_TRUE(temporary.ok()) << temporary.status();
  EXPECT_TRUE(temporary->results.empty());
}

TEST(Segment, OfASliceHasATableForANumberThatDiffers) {
  const std::string text = TextOf({EmbeddingOf(0, 2, 0, 4), EmbeddingOf(1, 2, 4, 4)});
  EXPECT_THAT(text, HasSubstr("sdy.mesh @ranks = <[\"r\"=2]>"));
  EXPECT_THAT(text, HasSubstr("dense<[0, 4]> : tensor<2xi32>"));
  EXPECT_THAT(text, HasSubstr("tensor<8x3xf32> {sdy.sharding = #sdy.sharding<@ranks, [{\"r\"}"));
  EXPECT_THAT(text, Not(HasSubstr("stablehlo.case")));
}

TEST(Segment, OfASliceOfIdenticalRanksHasNoTable) {
  const std::string text = TextOf({EmbeddingOf(0, 2, 0, 4), EmbeddingOf(1, 2, 0, 4)});
  EXPECT_THAT(text, Not(HasSubstr("partition_id")));
}

TEST(Segment, OfASliceHasABranchForEachDifferentExtent) {
  const std::string text =
      TextOf({EmbeddingOf(0, 3, 0, 4), EmbeddingOf(1, 3, 4, 3), EmbeddingOf(2, 3, 7, 3)});
  EXPECT_THAT(text, HasSubstr("stablehlo.case"));
  EXPECT_THAT(text, HasSubstr("dense<[0, 1, 1]> : tensor<3xi32>")) << "two branches";
  EXPECT_THAT(text, HasSubstr("tensor<12x3xf32>")) << "the table is stored with 4 rows";
}

// A sum over one rank is a copy in place, which writes nothing, but the text of the rank that has
// no rows differs. StableHLO has no choice between branches without a result.
TEST(Segment, OfASliceHasNoBranchesThatWriteNothing) {
  std::vector<model::Program> ranks = {EmbeddingOf(0, 2, 0, 4), EmbeddingOf(1, 2, 0, 4)};
  for (model::Program& program : ranks) {
    const int64_t rows = program.mesh.coordinates[Axis::kTensor] == 0 ? 4 : 0;
    const auto x = AddPlainValue(program, DType::kFloat32, {rows}, "x");
    AddPlainOp(program, {OpKind::kCopy, model::NoAttributes(), {x}, {x}});
  }
  const std::string text = TextOf(ranks);
  EXPECT_THAT(text, HasSubstr("tensor<8xf32>")) << "x is an argument";
  EXPECT_THAT(text, Not(HasSubstr("stablehlo.case")));
}

}  // namespace
}  // namespace troupe::kernels::xla
