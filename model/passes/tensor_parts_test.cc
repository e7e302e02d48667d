#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "model/build.h"
#include "model/program/verifier.h"
#include "model/testing.h"

namespace troupe::model {
namespace {

BuildOptions PartsOptions(bool by_rows, int parts) {
  MeshView mesh;
  mesh.degrees[Axis::kTensor] = 2;
  mesh.coordinates[Axis::kTensor] = 1;
  BuildOptions options = StageOptions(SmallModel("ADAD"), mesh, 2, 16);
  options.sequence_parallel = by_rows;
  options.tensor_parts = parts;
  return options;
}

bool IsRowMatmul(const Op& op) {
  return op.kind == OpKind::kMatmul || op.kind == OpKind::kMatmulGradInput;
}

// A range of rows of another value.
struct Rows {
  ValueId whole;
  int64_t begin, count;
};

Rows RowsOf(const Program& program, ValueId id) {
  const Value& value = program.value(id);
  return {value.view_of, value.view_offset / value.row_elements(), value.dims[0].local};
}

// The indices of the operations of `ops` for which `is` returns true.
template <typename Is>
std::vector<size_t> IndicesOf(const std::vector<Op>& ops, const Is& is) {
  std::vector<size_t> indices;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (is(ops[i])) indices.push_back(i);
  }
  return indices;
}

// True if a matmul is computed between the begin of `collective` and its wait.
bool HidesBehindMatmul(const std::vector<Op>& ops, size_t collective) {
  for (size_t i = collective + 1; i < ops.size(); ++i) {
    if (ops[i].kind == OpKind::kWait && ops[i].inputs[0] == ops[collective].outputs[0]) break;
    if (IsRowMatmul(ops[i])) return true;
  }
  return false;
}

TEST(TensorPartsTest, APartOfASumTravelsWhileTheNextPartIsComputed) {
  for (const bool by_rows : {false, true}) {
    constexpr int kParts = 4;
    const Program program = BuildProgram(PartsOptions(by_rows, kParts)).value();
    const std::vector<Op>& ops = program.Ops(0, Piece::kForward);
    const OpKind kind = by_rows ? OpKind::kReduceScatter : OpKind::kAllReduce;
    int sums = 0, hidden = 0;
    for (const size_t i : IndicesOf(ops, [&](const Op& op) { return op.kind == kind; })) {
      const bool is_of_matmul = std::any_of(ops.begin(), ops.end(), [&](const Op& op) {
        return IsRowMatmul(op) && op.outputs[0] == ops[i].inputs[0];
      });
      if (!is_of_matmul) continue;
      ++sums;
      if (!ops[i].asynchronous) continue;
      hidden += HidesBehindMatmul(ops, i);
    }
    // One matmul in each of four blocks; nothing is left to hide the last part of each.
    EXPECT_EQ(sums, 4 * kParts) << by_rows;
    EXPECT_EQ(hidden, 4 * (kParts - 1)) << by_rows;
  }
}

TEST(TensorPartsTest, RowsAreGatheredWhileThePartBeforeIsComputed) {
  constexpr int kParts = 4;
  const Program program = BuildProgram(PartsOptions(true, kParts)).value();
  for (const Piece piece : {Piece::kForward, Piece::kBackward}) {
    const std::vector<Op>& ops = program.Ops(0, piece);
    int gathers = 0, hidden = 0;
    int64_t last_begin = 0, last_count = 0;
    ValueId last_whole = kNoValue;
    for (const size_t i :
         IndicesOf(ops, [](const Op& op) { return op.kind == OpKind::kAllGather; })) {
      const Rows part = RowsOf(program, ops[i].outputs[0]);
      ++gathers;
      // Parts begin in order: none overtakes another.
      if (part.whole == last_whole) {
        EXPECT_EQ(part.begin, last_begin + last_count);
      }
      last_whole = part.whole;
      last_begin = part.begin;
      last_count = part.count;
      if (!ops[i].asynchronous) continue;
      hidden += HidesBehindMatmul(ops, i);
    }
    // Before each of four blocks and the head; in B for the gradients of the outputs of the
    // embedding and the blocks.
    EXPECT_EQ(gathers, 5 * kParts);
    EXPECT_GE(hidden, 4 * (kParts - 1));
  }
}

TEST(TensorPartsTest, EveryRowIsComputedOnce) {
  for (const bool by_rows : {false, true}) {
    const Program whole = BuildProgram(PartsOptions(by_rows, 1)).value();
    const Program parts = BuildProgram(PartsOptions(by_rows, 2)).value();
    const auto rows = [](const Program& program, Piece piece) {
      int64_t sum = 0;
      for (const Op& op : program.Ops(0, piece)) {
        if (IsRowMatmul(op)) sum += program.value(op.outputs[0]).elements();
      }
      return sum;
    };
    for (const Piece piece : {Piece::kForward, Piece::kBackward, Piece::kInputGradient})
      EXPECT_EQ(rows(parts, piece), rows(whole, piece));
  }
}

TEST(TensorPartsTest, WhatWasNotCutDoesNotVerify) {
  BuildOptions options = PartsOptions(true, 2);
  Program program = BuildProgram(options).value();
  for (Op& op : program.ops[0][static_cast<int>(Piece::kForward)]) {
    if (op.kind == OpKind::kReduceScatter) {
      std::get<ReduceScatterAttributes>(op.attributes).row_parts = 2;
      break;
    }
  }
  EXPECT_FALSE(VerifyProgram(program).ok());
}

TEST(TensorPartsTest, RowsThatAreNoMultipleOfThePartsAreRefusedWithTheNumbers) {
  BuildOptions options = PartsOptions(true, 3);
  const Status status = BuildProgram(options).status();
  EXPECT_NE(std::string(Message(status)).find("32 rows"), std::string::npos) << status;
  EXPECT_NE(std::string(Message(status)).find("tensor_parallel_parts 3"), std::string::npos)
      << status;
}

}  // namespace
}  // namespace troupe::model
