#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "model/build.h"
#include "model/program/verifier.h"
#include "model/testing.h"

namespace troupe::model {
namespace {

BuildOptions OverlapEndsOptions(Axis axis, int zero_stage) {
  MeshView mesh;
  mesh.degrees[axis] = 2;
  BuildOptions options = StageOptions(SmallModel("ADADAD"), mesh, 2, 8);
  options.zero_stage = zero_stage;
  options.bucket_elements = 1000;
  return options;
}

int CountOf(const std::vector<Op>& ops, OpKind kind) {
  return static_cast<int>(
      std::count_if(ops.begin(), ops.end(), [&](const Op& op) { return op.kind == kind; }));
}

// The number of matmuls after the operation at `begin`.
int MatmulsBehind(const std::vector<Op>& ops, size_t begin) {
  return static_cast<int>(
      std::count_if(ops.begin() + static_cast<long>(begin), ops.end(), IsMatmul));
}

TEST(OverlapEndsTest, EachParameterThatUnshardGathersIsWaitedForByItsFirstReader) {
  for (const int zero_stage : {1, 2}) {
    const Program program = BuildProgram(OverlapEndsOptions(Axis::kDataShard, zero_stage)).value();
    const std::vector<Op>& unshard = program.Ops(0, Piece::kUnshard);
    ASSERT_GE(unshard.size(), 20u);
    for (const Op& op : unshard) {
      EXPECT_EQ(op.kind, OpKind::kAllGather);
      EXPECT_TRUE(op.asynchronous) << ToText(op, program);
    }
    const std::vector<Op>& forward = program.Ops(0, Piece::kForward);
    EXPECT_EQ(CountOf(forward, OpKind::kWait), static_cast<int>(unshard.size()));
    // The gathers of the head are in flight during all layers.
    const Op& last = *std::find_if(forward.rbegin(), forward.rend(), [](const Op& op) {
                        return op.kind == OpKind::kWait;
                      }).base();
    EXPECT_EQ(last.kind, OpKind::kCopy);
    int before_last = 0;
    for (const Op& op : forward) {
      if (&op == &last) break;
      before_last += IsMatmul(op);
    }
    EXPECT_EQ(before_last, 12) << "four matmuls in each of three layers";
  }
}

// Weights that are quantised once per step: all gathers are in flight before the first wait, and
// each is quantised before the wait for the next.
TEST(OverlapEndsTest, WhatUnshardQuantizesIsInFlightWhileTheOneBeforeIsQuantized) {
  BuildOptions options = OverlapEndsOptions(Axis::kDataShard, 2);
  options.compute_dtype = DType::kBFloat16;
  options.float8 = Float8Recipe::kCurrent;
  const Program program = BuildProgram(options).value();
  const std::vector<Op>& unshard = program.Ops(0, Piece::kUnshard);
  size_t last_gather = 0, first_wait = unshard.size();
  int waits = 0, quantized = 0;
  for (size_t i = 0; i < unshard.size(); ++i) {
    if (unshard[i].kind == OpKind::kAllGather) {
      EXPECT_TRUE(unshard[i].asynchronous) << ToText(unshard[i], program);
      last_gather = i;
    }
    if (unshard[i].kind == OpKind::kWait) {
      first_wait = std::min(first_wait, i);
      ++waits;
    }
    if (unshard[i].kind == OpKind::kQuantize) {
      ++quantized;
      EXPECT_EQ(waits, quantized);
    }
  }
  EXPECT_EQ(quantized, 12) << "four matmuls in each of three layers";
  EXPECT_GT(first_wait, last_gather);
}

TEST(OverlapEndsTest, ABucketIsSummedFromItsLastGradientOn) {
  for (const auto& [axis, zero_stage, kind] :
       {std::tuple(Axis::kDataReplicate, 0, OpKind::kAllReduce),
        std::tuple(Axis::kDataShard, 1, OpKind::kReduceScatter)}) {
    const Program program = BuildProgram(OverlapEndsOptions(axis, zero_stage)).value();
    const std::vector<Op>& backward = program.Ops(0, Piece::kBackward);
    int begun = 0, hidden = 0;
    for (size_t i = 0; i < backward.size(); ++i) {
      const Op& op = backward[i];
      if (!op.last_microbatch) continue;
      EXPECT_EQ(op.kind, kind) << ToText(op, program);
      EXPECT_TRUE(op.asynchronous);
      ++begun;
      hidden += MatmulsBehind(backward, i) > 0;
      const std::vector<Op>& reduce = program.Ops(0, Piece::kReduce);
      EXPECT_EQ(std::count_if(reduce.begin(), reduce.end(),
                              [&](const Op& wait) {
                                return wait.kind == OpKind::kWait &&
                                       wait.inputs[0] == op.outputs[0];
                              }),
                1)
          << ToText(op, program);
    }
    EXPECT_GE(begun, 5);
    EXPECT_GE(hidden, begun - 4) << ToText(program);
    EXPECT_EQ(CountOf(program.Ops(0, Piece::kReduce), kind), 0);
  }
}

TEST(OverlapEndsTest, BlocksOfReplicasAreSummedAsSoonAsTheyAreScattered) {
  BuildOptions options = OverlapEndsOptions(Axis::kDataShard, 1);
  options.mesh.degrees[Axis::kDataReplicate] = 2;
  const Program program = BuildProgram(options).value();
  const std::vector<Op>& reduce = program.Ops(0, Piece::kReduce);
  size_t first_wait_for_sum = reduce.size(), last_begin = 0;
  for (size_t i = 0; i < reduce.size(); ++i) {
    if (reduce[i].kind == OpKind::kAllReduce) {
      EXPECT_TRUE(reduce[i].asynchronous) << ToText(reduce[i], program);
      last_begin = i;
    }
    const bool of_sum = reduce[i].kind == OpKind::kWait && reduce[i].part == Part::kForward;
    if (of_sum) first_wait_for_sum = std::min(first_wait_for_sum, i);
  }
  EXPECT_GT(last_begin, 0u);
  EXPECT_LT(last_begin, first_wait_for_sum) << "all are in flight before one is waited for";
}

// Both chunks of a rank with both ends of the model compute the gradient of a tied table, in an
// order that depends on the schedule.
TEST(OverlapEndsTest, WhatSeveralChunksMakeIsSummedInReduce) {
  MeshView mesh;
  mesh.degrees[Axis::kDataReplicate] = 2;
  mesh.degrees[Axis::kPipe] = 2;
  BuildOptions options = StageOptions(SmallModel("ADADAD"), mesh, 2, 8);
  options.model.tie_word_embeddings = true;
  options.bucket_elements = 1;
  options.chunks = {{.chunk = 0, .first_block = 0, .block_count = 1, .has_embedding = true},
                    {.chunk = 3, .first_block = 5, .block_count = 1, .has_head = true}};
  const Program program = BuildProgram(options).value();
  int in_reduce = 0;
  for (const Op& op : program.Ops(0, Piece::kReduce)) {
    if (op.kind != OpKind::kAllReduce) continue;
    ++in_reduce;
    EXPECT_EQ(op.inputs, (std::vector<ValueId>{program.parameters[0].gradient}));
  }
  EXPECT_EQ(in_reduce, 1);
}

TEST(OverlapEndsTest, AWaitThatIsMissingOrTooLateIsRefused) {
  const Program valid = BuildProgram(OverlapEndsOptions(Axis::kDataShard, 1)).value();
  for (const Piece piece : {Piece::kForward, Piece::kReduce}) {
    Program program = valid;
    std::vector<Op>& ops = program.ops[0][static_cast<int>(piece)];
    const auto wait =
        std::find_if(ops.begin(), ops.end(), [](const Op& op) { return op.kind == OpKind::kWait; });
    ASSERT_NE(wait, ops.end());
    const Op moved = *wait;
    ops.erase(wait);
    EXPECT_FALSE(VerifyProgram(program).ok()) << Name(piece);
    if (piece == Piece::kReduce) continue;
    ops.push_back(moved);
    EXPECT_NE(VerifyProgram(program).ToString().find("is in use by"), std::string::npos);
  }
  Program early = valid;
  std::vector<Op>& backward = early.ops[0][static_cast<int>(Piece::kBackward)];
  const auto begin = std::find_if(backward.begin(), backward.end(),
                                  [](const Op& op) { return op.last_microbatch; });
  ASSERT_NE(begin, backward.end());
  std::rotate(backward.begin(), begin, begin + 1);
  EXPECT_FALSE(VerifyProgram(early).ok()) << "a sum of gradients that are still being made";
}

TEST(OverlapEndsTest, GroupsOfOneBeginNothing) {
  EXPECT_EQ(
      ToText(BuildProgram(OverlapEndsOptions(Axis::kTensor, 0)).value()).find("last_microbatch"),
      std::string::npos);
}

}  // namespace
}  // namespace troupe::model
