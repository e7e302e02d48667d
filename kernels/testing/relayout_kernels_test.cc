// kRelayout with ranks as threads, on the reference and on any backend: rows must arrive at their
// place in the other layout, only rows that move are sent, and each direction is the derivative of
// the other.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>
#include <vector>

#include "base/check.h"
#include "kernels/backend/plain_program.h"
#include "kernels/exchange/row_relayout.h"
#include "kernels/reference/reference_backend.h"
#include "kernels/testing/collective_test.h"
#include "kernels/testing/testing.h"
#include "model/cost.h"
#include "model/program/builder.h"
#include "model/program/context_rows.h"
#include "model/program/derivative.h"

namespace troupe::kernels {
namespace {

using model::Axis;
using model::ContextRows;
using model::DType;
using model::OpKind;
using model::Piece;

using Numbers = std::vector<double>;

constexpr int64_t kSamples = 3, kTokens = 24, kWidth = 5;

// The rows of all samples that a rank holds, in order.
std::vector<int64_t> RowsOf(bool head_tail, int ranks, int rank) {
  const int64_t part = kTokens / ranks;
  const ContextRows held = ContextRows::Of(kTokens, ranks, rank);
  std::vector<int64_t> rows;
  for (int64_t sample = 0; sample < kSamples; ++sample) {
    for (int64_t row = 0; row < part; ++row) {
      rows.push_back(sample * kTokens + (head_tail ? held.Position(row) : rank * part + row));
    }
  }
  return rows;
}

Numbers Pick(const Numbers& whole, const std::vector<int64_t>& rows) {
  Numbers picked;
  for (const int64_t row : rows) {
    picked.insert(picked.end(), whole.begin() + row * kWidth, whole.begin() + (row + 1) * kWidth);
  }
  return picked;
}

// F has one operation, x → y; its derivative is dy → dx.
struct RelayoutProgram {
  model::Program program;
  model::ValueId x, y, dx, dy;
};

RelayoutProgram Build(DType dtype, bool to_head_tail, int ranks, int rank) {
  RelayoutProgram made;
  model::Program& program = made.program;
  program.mesh.degrees[Axis::kContext] = ranks;
  program.mesh.coordinates[Axis::kContext] = rank;
  program.chunks.resize(1);
  program.ops.resize(1);
  program.ops[0].resize(model::kNumPieces);
  const auto how = [](bool head_tail) {
    return head_tail ? model::ShardHow::kHeadTail : model::ShardHow::kContiguous;
  };
  model::ValueType type = {
      dtype,
      {{"rows", kSamples * kTokens, kSamples * kTokens / ranks}, {"hidden", kWidth, kWidth}},
      {},
      {}};
  type.placement[Axis::kContext] = model::Shard(0, how(!to_head_tail));
  made.x = model::AppendValue(program, "x", model::Role::kBoundary, 0, type);
  const model::RelayoutAttributes attributes = {
      {model::GroupOf(Axis::kContext), model::CollectivePurpose::kContext}, kSamples, to_head_tail};
  auto types = model::InferTypes(program, OpKind::kRelayout, attributes, {&made.x, 1});
  TROUPE_CHECK_OK(types.status());
  EXPECT_EQ((*types)[0].placement[Axis::kContext], model::Shard(0, how(to_head_tail)));
  made.y = model::AppendValue(program, "y", model::Role::kBoundary, 0, (*types)[0]);
  made.dy = model::AppendValue(program, "dy", model::Role::kBoundary, 0, (*types)[0]);
  program.ops[0][static_cast<int>(Piece::kForward)] = {
      {OpKind::kRelayout, attributes, {made.x}, {made.y}}};
  program.chunks[0].input = made.x;
  program.chunks[0].output = made.y;
  program.chunks[0].output_gradient = made.dy;
  TROUPE_CHECK_OK(model::Differentiate(program, 0, true));
  made.dx = program.chunks[0].input_gradient;
  return made;
}

// The whole y and dx, gathered from all ranks.
struct Whole {
  Numbers y, dx;
};
Whole RunAll(const MakeBackend& make, DType dtype, bool to_head_tail, int ranks, const Numbers& x,
             const Numbers& dy) {
  Whole whole = {Numbers(x.size()), Numbers(x.size())};
  RunRanks(ranks, make, [&](int rank, Backend& backend, const FindCommunicator& groups) {
    RelayoutProgram made = Build(dtype, to_head_tail, ranks, rank);
    const model::MemoryPlan plan = PlainPlan(made.program);
    const std::unique_ptr<Executable> executable = PrepareRank(backend, made.program, plan, groups);
    const std::vector<int64_t> from = RowsOf(!to_head_tail, ranks, rank);
    const std::vector<int64_t> to = RowsOf(to_head_tail, ranks, rank);
    WriteNumbers(*executable, made.program, made.x, Pick(x, from));
    WriteNumbers(*executable, made.program, made.dy, Pick(dy, to));
    TROUPE_CHECK_OK(executable->Run(0, Piece::kForward, 0, {}));
    TROUPE_CHECK_OK(executable->Run(0, Piece::kBackward, 0, {}));
    const auto place = [&](model::ValueId value, const std::vector<int64_t>& rows, Numbers* into) {
      const Numbers numbers = ReadNumbers(*executable, made.program, value);
      for (size_t r = 0; r < rows.size(); ++r) {
        std::copy_n(numbers.begin() + static_cast<int64_t>(r) * kWidth, kWidth,
                    into->begin() + rows[r] * kWidth);
      }
    };
    // Ranks write disjoint rows.
    place(made.y, to, &whole.y);
    place(made.dx, from, &whole.dx);
  });
  return whole;
}

Whole RunReference(bool to_head_tail, int ranks, const Numbers& x, const Numbers& dy) {
  return RunAll([] { return std::make_unique<ReferenceBackend>(); }, DType::kFloat64, to_head_tail,
                ranks, x, dy);
}

TEST_P(CollectiveTest, RelayoutMovesEveryRowToItsRankAndGradientsBack) {
  Numbers x(kSamples * kTokens * kWidth), dy(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<double>(i % 251);  // exact in bfloat16
    dy[i] = static_cast<double>((7 * i) % 241);
  }
  for (const int ranks : {1, 2, 3, 4}) {
    for (const bool to_head_tail : {false, true}) {
      const Whole whole = RunAll(GetParam().make, compute(), to_head_tail, ranks, x, dy);
      EXPECT_EQ(whole.y, x) << ranks << " ranks";
      EXPECT_EQ(whole.dx, dy) << ranks << " ranks";
    }
  }
}

TEST(Relayout, TheDerivativeIsThatOfFiniteDifferences) {
  TestRandom random;
  const Numbers x = random.Normals(kSamples * kTokens * kWidth);
  // The loss weights each row of y by its position on its rank, so that a misplaced row has a wrong
  // gradient.
  for (const int ranks : {2, 4}) {
    for (const bool to_head_tail : {false, true}) {
      const Numbers dy = random.Normals(static_cast<int64_t>(x.size()));
      const auto loss = [&](const Numbers& of) {
        const Numbers y = RunReference(to_head_tail, ranks, of, dy).y;
        return std::inner_product(y.begin(), y.end(), dy.begin(), 0.0);
      };
      const Numbers dx = RunReference(to_head_tail, ranks, x, dy).dx;
      for (int trial = 0; trial < 4; ++trial) {
        const auto i = static_cast<size_t>(random.Integer(0, static_cast<int64_t>(x.size()) - 1));
        Numbers above = x, below = x;
        above[i] += 1e-4;
        below[i] -= 1e-4;
        EXPECT_NEAR((loss(above) - loss(below)) / 2e-4, dx[i], 1e-7);
      }
    }
  }
}

TEST(Relayout, SendsOnlyWhatMovesAndCostsIt) {
  for (const int ranks : {1, 2, 4}) {
    for (const bool to_head_tail : {false, true}) {
      for (int rank = 0; rank < ranks; ++rank) {
        const RelayoutProgram made = Build(DType::kFloat32, to_head_tail, ranks, rank);
        const std::vector<model::Op>& ops = made.program.Ops(0, Piece::kForward);
        const RowRelayout relayout(made.program, ops[0], sizeof(float));
        const std::vector<int64_t> to = RowsOf(to_head_tail, ranks, rank);
        double moved = 0;
        for (const int64_t row : RowsOf(!to_head_tail, ranks, rank)) {
          if (std::find(to.begin(), to.end(), row) == to.end()) moved += kWidth * sizeof(float);
        }
        const std::vector<size_t>& sent = relayout.moves().send_bytes;
        EXPECT_EQ(static_cast<double>(std::accumulate(sent.begin(), sent.end(), size_t{0})), moved);
        EXPECT_EQ(sent[static_cast<size_t>(rank)], 0u);
        const std::vector<model::CollectiveCost> costs = model::Collectives(made.program, ops);
        ASSERT_EQ(costs.size(), ranks == 1 ? 0u : 1u);
        if (ranks == 1) continue;
        EXPECT_EQ(costs[0].purpose, model::CollectivePurpose::kContext);
        EXPECT_EQ(costs[0].sent_bytes, moved);
      }
    }
  }
}

TEST(Relayout, ItsPlacementRuleRefusesWhatItCannotMove) {
  model::Program program;
  program.mesh.degrees[Axis::kContext] = 2;
  const model::RelayoutAttributes attributes = {
      {model::GroupOf(Axis::kContext), model::CollectivePurpose::kContext},
      kSamples,
      /*to_head_tail=*/false};
  const auto infer = [&](model::AxisPlacement context, model::AxisPlacement tensor, int64_t rows) {
    model::ValueType type = {
        DType::kFloat32, {{"rows", 2 * rows, rows}, {"hidden", kWidth, kWidth}}, {}, {}};
    type.placement[Axis::kContext] = context;
    type.placement[Axis::kTensor] = tensor;
    const model::ValueId x = model::AppendValue(program, "x", model::Role::kInput, 0, type);
    return model::InferTypes(program, OpKind::kRelayout, attributes, {&x, 1}).status();
  };
  const model::AxisPlacement due = model::Shard(0, model::ShardHow::kHeadTail);
  EXPECT_TRUE(infer(due, model::Replicated(), 36).ok());
  EXPECT_TRUE(infer(due, model::Shard(1), 36).ok());
  EXPECT_FALSE(infer(model::Shard(0), model::Replicated(), 36).ok()) << "contiguous already";
  EXPECT_FALSE(infer(model::Replicated(), model::Replicated(), 36).ok());
  EXPECT_FALSE(infer(due, model::Shard(0), 36).ok()) << "rows of another tensor rank";
  EXPECT_FALSE(infer(due, model::Replicated(), 35).ok()) << "unequal chunks";
}

}  // namespace
}  // namespace troupe::kernels
