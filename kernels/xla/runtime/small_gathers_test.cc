#include "kernels/xla/runtime/small_gathers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "kernels/xla/runtime/segment.h"
#include "model/build.h"
#include "model/testing.h"

namespace troupe::kernels::xla {
namespace {

using model::Piece;
using testing::ElementsAre;

// A stage of two ranks that shard all parameters.
std::vector<model::Program> ShardedStage(int zero_stage, int hidden) {
  std::vector<model::Program> programs;
  for (int rank = 0; rank < 2; ++rank) {
    model::MeshView mesh;
    mesh.degrees[model::Axis::kDataShard] = 2;
    mesh.coordinates[model::Axis::kDataShard] = rank;
    model::ModelConfig config = model::SmallModel("AD");
    config.hidden_size = hidden;
    model::BuildOptions options = model::StageOptions(config, mesh, 2, 16);
    options.zero_stage = zero_stage;
    auto program = model::BuildProgram(options);
    EXPECT_TRUE(program.ok()) << program.status();
    programs.push_back(*std::move(program));
  }
  return programs;
}

// The names of the gathered inputs of each set in a piece.
std::vector<std::vector<std::string>> SetsOf(const std::vector<model::Program>& programs,
                                             Piece piece) {
  const auto stage = StagePrograms::Make({&programs[0], &programs[1]});
  EXPECT_TRUE(stage.ok()) << stage.status();
  const StageOps& ops = stage->Ops(0, piece);
  std::vector<std::vector<std::string>> sets;
  for (const std::vector<size_t>& set : FindSmallGathers(*stage, ops, 0, ops.size())) {
    sets.emplace_back();
    for (const size_t index : set)
      sets.back().push_back(programs[0].value(ops[index].any().inputs[0]).name);
  }
  return sets;
}

TEST(SmallGathers, AreThoseOfAllParametersOfASmallModel) {
  const auto programs = ShardedStage(1, 32);
  const auto sets = SetsOf(programs, Piece::kUnshard);
  ASSERT_EQ(sets.size(), 1u);
  EXPECT_THAT(sets[0], testing::Contains("block0.attention.norm"));
  EXPECT_THAT(sets[0], testing::Contains("head.norm"));
  const std::set<std::string> different(sets[0].begin(), sets[0].end());
  EXPECT_EQ(different.size(), sets[0].size());
}

TEST(SmallGathers, LeaveOutLargeBlocks) {
  const auto programs = ShardedStage(1, 8192);
  const auto sets = SetsOf(programs, Piece::kUnshard);
  ASSERT_EQ(sets.size(), 1u);
  EXPECT_THAT(sets[0], ElementsAre("block0.attention.norm", "block1.mlp.norm", "head.norm"));
}

TEST(SmallGathers, HaveNoSetWithoutGathers) {
  EXPECT_TRUE(SetsOf(ShardedStage(1, 32), Piece::kForward).empty());
}

// A gather whose input was written after the set began stays where it is.
TEST(SmallGathers, DoNotPassAWriterOfTheirInput) {
  auto programs = ShardedStage(1, 32);
  const size_t gathers = SetsOf(programs, Piece::kUnshard)[0].size();
  for (model::Program& program : programs) {
    std::vector<model::Op>& ops = program.ops[0][static_cast<size_t>(Piece::kUnshard)];
    const auto last = std::ranges::find_if(ops, [&](const model::Op& op) {
      return op.kind == model::OpKind::kAllGather &&
             program.value(op.inputs[0]).name == "head.norm";
    });
    ASSERT_NE(last, ops.end());
    const model::Op writer = {
        .kind = model::OpKind::kCopy, .inputs = {last->inputs[0]}, .outputs = {last->inputs[0]}};
    ops.insert(last, writer);
  }
  const auto sets = SetsOf(programs, Piece::kUnshard);
  ASSERT_EQ(sets.size(), 1u);
  EXPECT_EQ(sets[0].size(), gathers - 1);
}

TEST(SmallGathers, AreOneInTheText) {
  const auto programs = ShardedStage(1, 32);
  const auto stage = StagePrograms::Make({&programs[0], &programs[1]});
  ASSERT_TRUE(stage.ok()) << stage.status();
  const model::MemoryPlan plan = model::PlanMemory(programs[0], {1}, false, 1);
  const StageOps& ops = stage->Ops(0, Piece::kUnshard);
  const auto text = WriteSegment(*stage, plan, {ops, 0, ops.size(), false, {}});
  ASSERT_TRUE(text.ok()) << text.status();
  size_t gathers = 0, small = SetsOf(programs, Piece::kUnshard)[0].size();
  for (const StageOp& op : ops) gathers += op.any().kind == model::OpKind::kAllGather ? 1 : 0;
  ASSERT_GT(small, 1u);
  size_t written = 0;
  for (size_t at = 0; (at = text->module.find("stablehlo.all_gather", at)) != std::string::npos;
       ++at) {
    ++written;
  }
  EXPECT_EQ(written, gathers - small + 1);
}

}  // namespace
}  // namespace troupe::kernels::xla
