#include "kernels/xla/runtime/stage_programs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/backend/plain_program.h"
#include "model/program/control_word.h"

namespace troupe::kernels::xla {
namespace {

using model::Axis;
using model::DType;
using model::OpKind;
using model::Piece;
using testing::ElementsAre;
using testing::HasSubstr;

// A program of one of two tensor ranks: y = x + x, z = Σ y, and an update of the control word to
// which only rank 0 adds its loss. Rank 0 has 3 rows, rank 1 has 2.
model::Program ProgramOf(int rank) {
  model::Program program = PlainProgram();
  program.mesh.degrees[Axis::kTensor] = 2;
  program.mesh.coordinates[Axis::kTensor] = rank;
  const auto add = [&](const char* name) {
    return AddPlainValue(program, DType::kFloat32, {3 - rank, 4}, name);
  };
  const model::ValueId x = add("x"), y = add("y"), z = add("z");
  AddPlainOp(program, {OpKind::kAdd, model::NoAttributes(), {x, x}, {y}});
  AddPlainOp(program,
             {.kind = OpKind::kAllReduce,
              .attributes = model::AllReduceAttributes{{model::GroupOf(Axis::kTensor),
                                                        model::CollectivePurpose::kTensor}},
              .inputs = {y},
              .outputs = {z},
              .asynchronous = true});
  AddPlainOp(program, {OpKind::kWait, model::NoAttributes(), {z, y}, {}});
  const auto scalar = [&](const char* name, int64_t count) {
    return AddPlainValue(program, DType::kFloat64, {count}, name);
  };
  const model::ValueId control = scalar("control", model::kControlLanes), totals = scalar("t", 2);
  const model::ControlAttributes own{rank};
  if (rank == 0)
    program.update.push_back({OpKind::kControlTotals, own, {control, totals}, {control}});
  program.update.push_back({OpKind::kSumOfSquares, own, {control, x}, {control}});
  program.update.push_back(
      {OpKind::kControlReduce, model::CollectiveAttributes(), {control}, {control}});
  return program;
}

std::vector<model::Program> Both() { return {ProgramOf(0), ProgramOf(1)}; }

StatusOr<StagePrograms> Made(const std::vector<model::Program>& programs) {
  std::vector<const model::Program*> pointers;
  for (const model::Program& program : programs) pointers.push_back(&program);
  return StagePrograms::Make(pointers);
}

std::vector<model::Op>& Forward(model::Program& program) {
  return program.ops[0][static_cast<int>(Piece::kForward)];
}

TEST(StagePrograms, HaveTheLargestExtentsOfTheRanks) {
  const std::vector<model::Program> programs = Both();
  const auto stage = Made(programs);
  ASSERT_TRUE(stage.ok()) << stage.status();
  EXPECT_THAT(stage->StorageShape(0), ElementsAre(3, 4));
}

TEST(StagePrograms, HaveOperationsThatOnlySomeRanksHave) {
  const std::vector<model::Program> programs = Both();
  const auto stage = Made(programs);
  ASSERT_TRUE(stage.ok()) << stage.status();
  const StageOps& update = stage->update();
  ASSERT_EQ(update.size(), 3);
  EXPECT_THAT(update[0].of_rank, ElementsAre(&programs[0].update[0], nullptr));
  EXPECT_THAT(update[1].of_rank, ElementsAre(&programs[0].update[1], &programs[1].update[0]));
  EXPECT_THAT(update[2].of_rank, ElementsAre(&programs[0].update[2], &programs[1].update[1]));
}

TEST(StagePrograms, FindTheCollectiveThatAWaitCompletes) {
  const std::vector<model::Program> programs = Both();
  const auto stage = Made(programs);
  const StageOps& forward = stage->Ops(0, Piece::kForward);
  EXPECT_EQ(stage->BegunBy(forward[2].any()), &forward[1]);
}

TEST(StagePrograms, ContainTheCollectivesOfAStageAndNoOthers) {
  const auto is_within = [](const model::Op& op, int pipe) {
    std::vector<model::Program> programs = Both();
    for (model::Program& program : programs) program.mesh.degrees[Axis::kPipe] = pipe;
    return Made(programs)->IsWithin(op);
  };
  const model::Program program = ProgramOf(0);
  const model::Op& control = program.update.back();
  const model::Op& add = program.Ops(0, Piece::kForward)[0];
  model::Op sum = program.Ops(0, Piece::kForward)[1];
  EXPECT_TRUE(is_within(sum, 2));
  EXPECT_TRUE(is_within(control, 1));
  EXPECT_FALSE(is_within(control, 2));
  EXPECT_FALSE(is_within(add, 1));
  auto& group = std::get<model::AllReduceAttributes>(sum.attributes).group;
  group = model::GroupOf(Axis::kContext);
  EXPECT_FALSE(is_within(sum, 1)) << "a group of one rank";
  group = {model::CollectiveGroup::Kind::kOwners, 0};
  EXPECT_FALSE(is_within(sum, 2));
  const model::Program alone = ProgramOf(0);
  EXPECT_FALSE(StagePrograms::Make({&alone})->IsWithin(program.Ops(0, Piece::kForward)[1]))
      << "a slice of one rank";
}

struct Difference {
  std::string message;
  std::function<void(std::vector<model::Program>&)> change;
  StatusCode code = StatusCode::kUnimplemented;
};

std::vector<Difference> Differences() {
  using Programs = std::vector<model::Program>;
  const auto all = [](Programs& p, int rows) {
    for (model::Program& program : p) {
      const model::ReduceScatterAttributes whole = {
          {model::GroupOf(Axis::kTensor), model::CollectivePurpose::kGradient}, {.owner = rows}};
      Forward(program)[1] = {OpKind::kReduceScatter, whole, {1}, {2}};
    }
  };
  return {
      {"y has another dtype on partition 1",
       [](Programs& p) { p[1].values[1].dtype = DType::kBFloat16; }},
      {"y has another name", [](Programs& p) { p[1].values[1].name = "w"; }},
      {"y has another role", [](Programs& p) { p[1].values[1].role = model::Role::kSaved; }},
      {"y has another number of dims", [](Programs& p) { p[1].values[1].dims.pop_back(); }},
      {"y has another storage", [](Programs& p) { p[1].values[1].view_of = 0; }},
      {"partition 1 has 6 values", [](Programs& p) { p[1].values.push_back(p[1].values[0]); }},
      {"add y has other inputs on partition 1",
       [](Programs& p) {
         Forward(p[1])[0].inputs = {0, 2};
       }},
      {"all_reduce z has another place in the step",
       [](Programs& p) { Forward(p[1])[1].asynchronous = false; }},
      {"all_reduce z has another group",
       [](Programs& p) {
         std::get<model::AllReduceAttributes>(Forward(p[1])[1].attributes).group =
             model::GroupOf(Axis::kContext);
       }},
      {"does not run add y", [](Programs& p) { Forward(p[1]).erase(Forward(p[1]).begin()); }},
      {"does not run control_reduce", [](Programs& p) { p[1].update.pop_back(); }},
      {"comes in another order",
       [](Programs& p) { std::swap(Forward(p[1])[0], Forward(p[1])[1]); }},
      {"reduce_scatter z has all rows on rank 1 of its group (shard_whole_matrices)",
       [all](Programs& p) { all(p, 1); }},
      {"a slice has 3 programs, but its stage has 2 ranks",
       [](Programs& p) { p.push_back(ProgramOf(1)); }, StatusCode::kInvalidArgument},
      {"partitions 0 and 1 are the same rank",
       [](Programs& p) { p[1].mesh.coordinates[Axis::kTensor] = 0; }, StatusCode::kInvalidArgument},
      {"partitions 0 and 1 are not ranks of one stage",
       [](Programs& p) { p[1].mesh.coordinates[Axis::kPipe] = 1; }, StatusCode::kInvalidArgument},
  };
}

std::vector<Difference> DifferencesOfCollectives() {
  using Programs = std::vector<model::Program>;
  // Partition 1 has `changed` where partition 0 has `same`.
  const auto differ = [](OpKind kind, const model::Attributes& same,
                         const model::Attributes& changed) {
    return [=](Programs& p) {
      Forward(p[0])[1] = {kind, same, {1}, {2}};
      Forward(p[1])[1] = {kind, changed, {1}, {2}};
    };
  };
  const model::CollectiveAttributes over = {model::GroupOf(Axis::kTensor),
                                            model::CollectivePurpose::kTensor};
  return {
      {"all_reduce z has another reduction",
       differ(OpKind::kAllReduce, model::AllReduceAttributes{over},
              model::AllReduceAttributes{over, model::ReduceKind::kMax})},
      {"all_reduce z has terms of another dtype",
       differ(OpKind::kAllReduce, model::AllReduceAttributes{over},
              model::AllReduceAttributes{over, model::ReduceKind::kSum, DType::kBFloat16})},
      {"reduce_scatter z has terms of another dtype",
       differ(OpKind::kReduceScatter, model::ReduceScatterAttributes{over},
              model::ReduceScatterAttributes{over, {}, 1, DType::kBFloat16})},
      {"reduce_scatter z has another division of its rows",
       differ(OpKind::kReduceScatter, model::ReduceScatterAttributes{over},
              model::ReduceScatterAttributes{over, {.unit = 2}})},
      {"all_gather z has another division of its rows",
       differ(OpKind::kAllGather, model::AllGatherAttributes{over},
              model::AllGatherAttributes{over, {.unit = 2}})},
      {"shift z has another number of places",
       differ(OpKind::kShift, model::ShiftAttributes{over, 1}, model::ShiftAttributes{over, -1})},
      {"exchange_heads z has another exchange of heads",
       differ(OpKind::kExchangeHeads, model::ExchangeHeadsAttributes{over, 1, 2, false},
              model::ExchangeHeadsAttributes{over, 1, 2, true})},
      {"relayout z has another order of rows",
       differ(OpKind::kRelayout, model::RelayoutAttributes{over, 1, false},
              model::RelayoutAttributes{over, 1, true})},
      {"shift z has attributes of another kind",
       differ(OpKind::kShift, model::ShiftAttributes{over, 1}, over)}};
}

TEST(StagePrograms, WithADifferenceThatOneTextCannotHaveAreRefused) {
  std::vector<Difference> differences = Differences();
  for (Difference& difference : DifferencesOfCollectives())
    differences.push_back(std::move(difference));
  for (const Difference& difference : differences) {
    std::vector<model::Program> programs = Both();
    difference.change(programs);
    const Status status = Made(programs).status();
    EXPECT_EQ(status.code(), difference.code) << difference.message;
    EXPECT_THAT(ToString(status), HasSubstr(difference.message));
  }
}

}  // namespace
}  // namespace troupe::kernels::xla
