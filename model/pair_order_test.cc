#include "model/pair_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "base/golden/golden_file.h"
#include "model/build.h"
#include "model/program/op_rules.h"
#include "model/program/storage.h"
#include "model/testing.h"

namespace troupe::model {
namespace {

using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::SizeIs;

const std::vector<Piece> kSplit = {Piece::kInputGradient, Piece::kWeightGradient};

// Both chunks of the only stage, each with one attention and one mixture block.
BuildOptions TwoChunks(int experts_ranks, bool interleaves) {
  MeshView mesh;
  mesh.degrees[Axis::kExpert] = experts_ranks;
  BuildOptions options = StageOptions(SmallMixture("AEAE"), mesh, 2, 8);
  options.chunks = {{0, 0, 2, true, false}, {1, 2, 2, false, true}};
  options.interleaves_pairs = interleaves;
  return options;
}

struct PairOp {
  int piece;  // as in PieceRun
  Op op;
};

std::vector<PairOp> OpsOf(const Program& program, int forward, int backward,
                          const std::vector<Piece>& pieces) {
  std::vector<PairOp> ops;
  for (const PieceRun& run : InterleavePair(program, forward, backward, pieces)) {
    const std::vector<Op>& all =
        run.piece == 0 ? program.Ops(forward, Piece::kForward)
                       : program.Ops(backward, pieces[static_cast<size_t>(run.piece - 1)]);
    for (int i = run.begin; i < run.end; ++i)
      ops.push_back({run.piece, all[static_cast<size_t>(i)]});
  }
  return ops;
}

// The operations in order if F runs before the backward.
std::vector<PairOp> OpsOfApart(const Program& program, int forward, int backward) {
  std::vector<PairOp> ops;
  for (const Op& op : program.Ops(forward, Piece::kForward)) ops.push_back({0, op});
  for (int piece = 0; piece < 2; ++piece) {
    for (const Op& op : program.Ops(backward, kSplit[static_cast<size_t>(piece)]))
      ops.push_back({piece + 1, op});
  }
  return ops;
}

// The numbers of computing operations between the collectives of purpose dispatch and their waits.
std::vector<int> WorkUnderDispatch(const std::vector<PairOp>& ops) {
  std::vector<int> work;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (!ops[i].op.asynchronous ||
        CollectiveOf(ops[i].op).purpose != CollectivePurpose::kDispatch) {
      continue;
    }
    int& computed = work.emplace_back(0);
    for (size_t end = i + 1; end < ops.size(); ++end) {
      if (ops[end].op.kind == OpKind::kWait && ops[end].op.inputs[0] == ops[i].op.outputs[0]) break;
      computed += Computes(ops[end].op);
    }
  }
  return work;
}

TEST(PairOrderTest, EverySideKeepsItsOperationsAndTheirOrder) {
  const Program program = BuildProgram(TwoChunks(2, true)).value();
  for (const auto& pieces : {kSplit, std::vector<Piece>{Piece::kBackward}}) {
    std::vector<int> next(pieces.size() + 1);
    int switches = 0;
    for (const PieceRun& run : InterleavePair(program, 1, 0, pieces)) {
      EXPECT_EQ(run.begin, next[static_cast<size_t>(run.piece)]);
      EXPECT_LT(run.begin, run.end);
      next[static_cast<size_t>(run.piece)] = run.end;
      ++switches;
    }
    EXPECT_EQ(next[0], static_cast<int>(program.Ops(1, Piece::kForward).size()));
    for (size_t p = 0; p < pieces.size(); ++p) {
      EXPECT_EQ(next[p + 1], static_cast<int>(program.Ops(0, pieces[p]).size()));
    }
    EXPECT_GT(switches, 6);
  }
}

TEST(PairOrderTest, DispatchAndCombineAreInFlightWhileTheOtherSideComputes) {
  const Program apart = BuildProgram(TwoChunks(2, false)).value();
  const Program program = BuildProgram(TwoChunks(2, true)).value();
  for (const auto& [forward, backward] : {std::pair(0, 1), std::pair(1, 0)}) {
    // The exchanges of counts, rows and results; in the backward the gradients of the last two.
    const std::vector<int> work = WorkUnderDispatch(OpsOf(program, forward, backward, kSplit));
    // Only the backward's work before its first exchange hides the exchange of counts, which is
    // almost nothing for a chunk that ends with a mixture.
    EXPECT_THAT(work, ElementsAre(Ge(0), Ge(1), Ge(1), Ge(1), Ge(1)));
    // Shared experts hide only the dispatch of rows, not the exchange of counts or the return of
    // results.
    EXPECT_THAT(WorkUnderDispatch(OpsOfApart(apart, forward, backward)), SizeIs(2));
  }
}

TEST(PairOrderTest, WithNothingToHideTheForwardComesFirst) {
  const Program program = BuildProgram(TwoChunks(1, true)).value();
  const std::vector<PieceRun> order = InterleavePair(program, 0, 1, kSplit);
  const auto all = [&](int chunk, Piece piece) {
    return static_cast<int>(program.Ops(chunk, piece).size());
  };
  EXPECT_EQ(order, (std::vector<PieceRun>{{0, 0, all(0, Piece::kForward)},
                                          {1, 0, all(1, Piece::kInputGradient)},
                                          {2, 0, all(1, Piece::kWeightGradient)}}));
}

TEST(PairOrderTest, GradientsOfATiedTableAreAddedUpAsIfOneActionCameAfterTheOther) {
  BuildOptions options = TwoChunks(2, true);
  options.model.tie_word_embeddings = true;
  options.head_rows = 4;  // so that the head computes its gradients in its forward
  const Program program = BuildProgram(options).value();
  const std::vector<ValueId> roots = StorageRoots(program);
  ValueId table = kNoValue;
  for (const ParameterEntry& entry : program.parameters) {
    if (program.value(entry.value).name == "embedding.table")
      table = roots[static_cast<size_t>(entry.gradient)];
  }
  ASSERT_NE(table, kNoValue);
  // The head's forward and the backward of the embedding both compute gradients of the table.
  std::string writers;
  for (const PairOp& op : OpsOf(program, 1, 0, kSplit)) {
    for (const ValueId output : op.op.outputs) {
      if (roots[static_cast<size_t>(output)] == table) writers += op.piece == 0 ? 'F' : 'B';
    }
  }
  EXPECT_NE(writers.find('F'), std::string::npos) << writers;
  EXPECT_NE(writers.find('B'), std::string::npos) << writers;
  EXPECT_LT(writers.rfind('F'), writers.find('B')) << writers;
}

// To accept a change, run with TROUPE_UPDATE_GOLDEN=1 and review the diff.
TEST(PairOrderTest, OfAMixtureOverTwoExpertRanks) {
  const Program program = BuildProgram(TwoChunks(2, true)).value();
  std::string text;
  for (const auto& [forward, backward] : {std::pair(0, 1), std::pair(1, 0)}) {
    text += fmt::format("F of chunk {}, I and W of chunk {}\n", forward, backward);
    int piece = -1;
    for (const PairOp& op : OpsOf(program, forward, backward, kSplit)) {
      if (op.piece != piece) text += fmt::format("  {}\n", "FIW"[op.piece]);
      piece = op.piece;
      const ValueId named = op.op.outputs.empty() ? op.op.inputs[0] : op.op.outputs[0];
      text += fmt::format("    {}{} {}\n", op.op.asynchronous ? "begin " : "", Name(op.op.kind),
                          program.value(named).name);
    }
  }
  ExpectGolden("model/golden/pair_experts_2.txt", text);
}

}  // namespace
}  // namespace troupe::model
