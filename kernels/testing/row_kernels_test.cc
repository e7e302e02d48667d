// Tests of row-wise kernels: sums, norms, rotations, gates, vocabulary statistics, choices of
// experts.
#include "kernels/testing/kernel_test.h"

#include <algorithm>
#include <cmath>

#include "model/program/context_rows.h"

namespace troupe::kernels {
namespace {

using model::DType;
using model::OpKind;

TEST_P(KernelTest, EmbeddingTakesRowsAndZerosForIdsOfOtherRanks) {
  for (const auto& [rows, hidden] : kShapes) {
    ExpectEqual({OpKind::kEmbedding,
                 model::VocabAttributes{5},
                 {Ints(rows, 0, 30), Compute({17, hidden})},
                 {Empty(compute(), {rows, hidden})}},
                0);
  }
}

TEST_P(KernelTest, EmbeddingGradAddsRepeatedTokens) {
  std::vector<std::pair<int64_t, int64_t>> shapes = kShapes;
  shapes.emplace_back(2500, 8);   // more rows than any device has threads in a block
  shapes.emplace_back(66000, 1);  // more rows than 64 such blocks have threads
  for (const auto& [rows, hidden] : shapes) {
    const TestOp op{OpKind::kEmbeddingGrad,
                    model::VocabAttributes{5},
                    {Ints(rows, 0, 30), Compute({rows, hidden})},
                    {Floats({17, hidden})},
                    true};
    const double slack = 8 + std::sqrt(static_cast<double>(rows));
    ExpectEqual(op, slack);
    ExpectEqual(op, slack, {.first_microbatch = true});
  }
}

// Shapes of norms: rows that some devices keep in registers, rows too wide for that, and more rows
// than blocks.
std::vector<std::pair<int64_t, int64_t>> ShapesOfNorms() {
  std::vector<std::pair<int64_t, int64_t>> shapes = kShapes;
  for (const auto& shape : {std::pair(3, 768), std::pair(3, 2048), std::pair(3, 4608),
                            std::pair(2, 8256), std::pair(4500, 16), std::pair(270, 2056)}) {
    shapes.emplace_back(shape);
  }
  return shapes;
}

TEST_P(KernelTest, RmsNormMatches) {
  for (const auto& [rows, hidden] : ShapesOfNorms()) {
    ExpectEqual({OpKind::kRmsNorm,
                 model::NormAttributes{1e-5},
                 {Compute({rows, hidden}), Floats({hidden})},
                 {Empty(compute(), {rows, hidden}), Empty(DType::kFloat32, {rows})}},
                8);
    ExpectEqual({OpKind::kAddRmsNorm,
                 model::NormAttributes{1e-5},
                 {Compute({rows, hidden}), Compute({rows, hidden}), Floats({hidden})},
                 {Empty(compute(), {rows, hidden}), Empty(compute(), {rows, hidden}),
                  Empty(DType::kFloat32, {rows})}},
                8);
  }
}

TEST_P(KernelTest, RmsNormGradMatchesWithAndWithoutResidual) {
  for (const auto& [rows, hidden] : ShapesOfNorms()) {
    TestValue rstd = Floats({rows});
    for (double& value : rstd.numbers)
      value = 0.1 + 0.05 * std::abs(value);  // avoids cancellation at H = 1
    TestOp op{OpKind::kRmsNormGrad,
              model::NormAttributes{1e-5},
              {Compute({rows, hidden}), Compute({rows, hidden}), Floats({hidden}), rstd},
              {Empty(compute(), {rows, hidden}), Floats({hidden})},
              true};
    // The rounding errors of a sum over the rows, one after the other, add up as a random walk.
    const double slack = std::max(32.0, std::sqrt(static_cast<double>(rows)));
    ExpectEqual(op, slack);
    op.inputs.push_back(Compute({rows, hidden}));
    ExpectEqual(op, slack, {.first_microbatch = true});
  }
}

TEST_P(KernelTest, AddMatchesInPlaceToo) {
  for (const auto& [rows, hidden] : kShapes) {
    TestOp op{OpKind::kAdd,
              {},
              {Compute({rows, hidden}), Compute({rows, hidden})},
              {Empty(compute(), {rows, hidden})}};
    ExpectEqual(op, 1);
    op.view_of_input = 0;
    ExpectEqual(op, 1);
  }
}

TEST_P(KernelTest, AccumulateAddsUnlessItWritesFirst) {
  for (const int64_t count : {1, 15, 16, 17, 1000, 5000}) {
    const TestOp op{OpKind::kAccumulate, {}, {Floats({count})}, {Floats({count})}, true};
    ExpectEqual(op, 1);
    ExpectEqual(op, 0, {.first_microbatch = true});
  }
}

TEST_P(KernelTest, CopyKeepsEveryBit) {
  for (const auto& [rows, hidden] : kShapes) {
    for (const int view : {-1, 0}) {
      ExpectEqual({OpKind::kCopy,
                   {},
                   {Compute({rows, hidden})},
                   {Empty(compute(), {rows, hidden})},
                   false,
                   view},
                  0);
    }
  }
}

TEST_P(KernelTest, HeadsAreSplitAndJoinedAgain) {
  for (const auto& [rows, unit] : kShapes) {
    const int64_t q = 3 * unit, kv = 2 * unit;
    ExpectEqual({OpKind::kSplitHeads,
                 {},
                 {Compute({rows, q + kv})},
                 {Empty(compute(), {rows, q}), Empty(compute(), {rows, kv})}},
                0);
    ExpectEqual({OpKind::kJoinHeads,
                 {},
                 {Compute({rows, q}), Compute({rows, kv})},
                 {Empty(compute(), {rows, q + kv})}},
                0);
  }
}

TEST_P(KernelTest, CastRoundsToNearestEven) {
  for (const int64_t count : {1, 15, 16, 17, 1000}) {
    TestValue x = Floats({count});
    x.numbers[0] = 1.0 + 0x1.0p-8;  // half-way, rounds to even: 1
    const TestOp op{OpKind::kCast, {}, {x}, {Empty(DType::kBFloat16, {count})}};
    EXPECT_EQ(RunOp(*backend_, op).outputs[0][0], 1.0);
    ExpectEqual(op, 0);  // the reference rounds when its output is read
  }
}

TEST_P(KernelTest, DropoutDropsWhatTheReferenceDrops) {
  ReferenceBackend reference;
  for (const int64_t hidden : {1, 7, 15, 16, 33, 64, 65, 129, 256}) {
    for (const int view : {-1, 0}) {
      constexpr int64_t kTokens = 8, kSamples = 3;
      model::DropoutAttributes attributes = {.probability = 0.3,
                                             .key = 0xFEDCBA9876543210,
                                             .tokens = kTokens,
                                             .held = model::ContextRows::Of(kTokens, 2, 1),
                                             .own = {.first = 2}};
      const int64_t rows = kSamples * kTokens / 2 - attributes.own.first;
      // The second sample's step is that of an evaluation.
      const TestValue samples = {
          DType::kInt32,
          {kSamples, 2},
          {static_cast<double>(random_.Integer(1, INT32_MAX)), 0, 0, 1, 2, INT32_MAX}};
      const TestOp op = {OpKind::kDropout,
                         attributes,
                         {Compute({rows, hidden}), samples},
                         {Empty(compute(), {rows, hidden})},
                         false,
                         view};
      ExpectEqual(op, 2);
      const std::vector<double> actual = RunOp(*backend_, op).outputs[0];
      const std::vector<double> expected = RunOp(reference, op).outputs[0];
      for (size_t i = 0; i < expected.size(); ++i) {
        ASSERT_EQ(actual[i] == 0, expected[i] == 0) << "hidden " << hidden << " element " << i;
      }
    }
  }
}

TEST_P(KernelTest, RopeTurnsQueriesAndKeysAndBack) {
  struct Shape {
    int64_t rows, q, g, d;
  };
  for (const auto& [rows, q, g, d] :
       std::vector<Shape>{{1, 1, 1, 2}, {5, 3, 1, 6}, {33, 4, 2, 34}, {64, 2, 2, 64}}) {
    for (const bool inverse : {false, true}) {
      const TestOp op{OpKind::kRope,
                      model::RopeAttributes{q, g, d, 10000.0, {}, inverse},
                      {Compute({rows, (q + 2 * g) * d}), Ints(rows, 0, 300)},
                      {Empty(compute(), {rows, (q + 2 * g) * d})},
                      false,
                      inverse ? 0 : -1};
      ExpectEqual(op, 16);
    }
  }
}

TEST_P(KernelTest, SwiGluMatchesAlsoFarFromZero) {
  for (const auto& [rows, ffn] : kShapes) {
    ExpectEqual(
        {OpKind::kSwiGlu, {}, {Compute({rows, 2 * ffn}, 20.0)}, {Empty(compute(), {rows, ffn})}},
        16);
    for (const int view : {-1, 1}) {
      ExpectEqual({OpKind::kSwiGluGrad,
                   {},
                   {Compute({rows, ffn}), Compute({rows, 2 * ffn}, 20.0)},
                   {Empty(compute(), {rows, 2 * ffn})},
                   false,
                   view},
                  16);
    }
  }
}

TEST_P(KernelTest, SoftmaxStatisticsAndTheirGradientMatch) {
  for (const auto& [rows, vocabulary] :
       std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {3, 7}, {9, 37}, {5, 2049}, {7, 5000}}) {
    const TestValue logits = Compute({rows, vocabulary}, 5.0);
    const TestValue targets = Ints(rows, 0, 2 * vocabulary);
    const TestOp stats{OpKind::kSoftmaxStats,
                       model::VocabAttributes{vocabulary / 2},
                       {logits, targets},
                       {Empty(DType::kFloat32, {rows}), Empty(DType::kFloat32, {2, rows})}};
    ExpectEqual(stats, 32);
    ReferenceBackend reference;
    const TestResult known = RunOp(reference, stats);
    TestValue dsums{DType::kFloat32, {2, rows}, random_.Normals(2 * rows)};
    for (int64_t r = 0; r < rows; ++r) dsums.numbers[r] = 1.0 / known.outputs[1][r];
    for (const int view : {-1, 0}) {
      ExpectEqual({OpKind::kSoftmaxStatsGrad,
                   model::VocabAttributes{vocabulary / 2},
                   {logits, targets, {DType::kFloat32, {rows}, known.outputs[0]}, dsums},
                   {Empty(compute(), {rows, vocabulary})},
                   false,
                   view},
                  16);
    }
  }
}

TEST_P(KernelTest, SoftmaxStatisticsWithTheGradientMatch) {
  const auto expect = [&](int64_t rows, int64_t vocabulary, double z, int view) {
    TestValue weights = Floats({rows});
    if (rows > 1) weights.numbers[0] = 0;
    // At this scale no target has nearly all of the softmax; otherwise its gradient would cancel.
    ExpectEqual({OpKind::kSoftmaxStatsAndGrad,
                 model::LossAttributes{z},
                 {Compute({rows, vocabulary}), Ints(rows, 0, vocabulary - 1), weights},
                 {Empty(compute(), {rows, vocabulary}), Empty(DType::kFloat32, {rows}),
                  Empty(DType::kFloat32, {2, rows})},
                 false,
                 view},
                32);
  };
  expect(1, 1, 0.0, 0);
  for (const auto& [rows, vocabulary] :
       std::vector<std::pair<int64_t, int64_t>>{{3, 7}, {9, 37}, {5, 2049}, {7, 5000}}) {
    for (const double z : {0.0, 0.2}) {
      for (const int view : {-1, 0}) expect(rows, vocabulary, z, view);
    }
  }
  // Rows that fit a GPU block's shared memory with a second block on the same multiprocessor,
  // alone, and only in part.
  for (const int64_t vocabulary : {50'304, 70'000, 90'008, 90'007}) expect(1, vocabulary, 0.2, 0);
}

// With a whole vocabulary, the fused operation must equal the chain of separate ones.
TEST_P(KernelTest, SoftmaxStatisticsWithTheGradientHaveTheBitsOfOneAfterTheOther) {
  for (const auto& [rows, vocabulary] :
       std::vector<std::pair<int64_t, int64_t>>{{3, 7}, {9, 64}, {5, 2049}}) {
    const TestValue logits = Compute({rows, vocabulary}, 5.0),
                    targets = Ints(rows, 0, vocabulary - 1);
    const TestValue weights = Floats({rows});
    const auto floats = [](std::vector<int64_t> extents, std::vector<double> numbers = {}) {
      return TestValue{DType::kFloat32, std::move(extents), std::move(numbers)};
    };
    for (const double z : {0.0, 0.2}) {
      const auto together = RunOp(
          *backend_, {OpKind::kSoftmaxStatsAndGrad,
                      model::LossAttributes{z},
                      {logits, targets, weights},
                      {Empty(compute(), {rows, vocabulary}), floats({rows}), floats({2, rows})}});
      const auto stats = RunOp(*backend_, {OpKind::kSoftmaxStats,
                                           model::VocabAttributes{},
                                           {logits, targets},
                                           {floats({rows}), floats({2, rows})}});
      const TestValue max = floats({rows}, stats.outputs[0]),
                      sums = floats({2, rows}, stats.outputs[1]);
      std::vector<TestValue> read = {sums, weights};
      if (z > 0) read.push_back(max);
      const auto dsums =
          RunOp(*backend_,
                {OpKind::kCrossEntropyGrad, model::LossAttributes{z}, read, {floats({2, rows})}});
      const auto gradient =
          RunOp(*backend_, {OpKind::kSoftmaxStatsGrad,
                            model::VocabAttributes{},
                            {logits, targets, max, floats({2, rows}, dsums.outputs[0])},
                            {Empty(compute(), {rows, vocabulary})}});
      ExpectSameBits(together.outputs[0], gradient.outputs[0]);
      ExpectSameBits(together.outputs[1], stats.outputs[0]);
      ExpectSameBits(together.outputs[2], stats.outputs[1]);
    }
  }
}

TEST_P(KernelTest, CrossEntropyMatches) {
  for (const int64_t rows : {1, 5, 16, 67}) {
    TestValue sums = Floats({2, rows});
    for (double& value : sums.numbers) value = 1.0 + std::abs(value);
    TestValue weights = Ints(rows, 0, 1);
    weights.dtype = DType::kFloat32;
    const TestValue max = Floats({rows});
    const TestValue global{DType::kFloat32, {rows}, std::vector<double>(rows, 4.0)};
    ExpectEqual(
        {OpKind::kSoftmaxRescale, {}, {sums, max, global}, {Empty(DType::kFloat32, {2, rows})}},
        16);
    ExpectEqual(
        {OpKind::kSoftmaxRescaleGrad, {}, {sums, max, global}, {Empty(DType::kFloat32, {2, rows})}},
        16);
    ExpectEqual({OpKind::kCrossEntropyGrad,
                 model::LossAttributes{},
                 {sums, weights},
                 {Empty(DType::kFloat32, {2, rows})}},
                4);
    ExpectEqual({OpKind::kCrossEntropyGrad,
                 model::LossAttributes{0.2},
                 {sums, weights, max},
                 {Empty(DType::kFloat32, {2, rows})}},
                16);
    const TestOp loss{OpKind::kCrossEntropy,
                      model::LossAttributes{},
                      {max, sums, weights},
                      {{DType::kFloat64, {2}, {3.0, 4.0}}},
                      true};
    ExpectEqual(loss, 4);
    ExpectEqual(loss, 4, {.first_microbatch = true});
  }
}

TEST_P(KernelTest, PermuteAndCombineMatchWithDroppedChoices) {
  constexpr int64_t kChoices = 3;
  for (const auto& [rows, hidden] : kShapes) {
    // A random permutation of the kept choices.
    std::vector<double> slots(rows * kChoices);
    int64_t kept = 0;
    for (double& slot : slots) slot = random_.Integer(0, 3) == 0 ? -1 : static_cast<double>(kept++);
    for (size_t i = slots.size(); i-- > 1;) std::swap(slots[i], slots[random_.Integer(0, i)]);
    const TestValue slot_value{DType::kInt32, {rows, kChoices}, slots};
    const int64_t buffer = rows * kChoices;
    ExpectEqual({OpKind::kPermute,
                 {},
                 {Compute({rows, hidden}), slot_value},
                 {Empty(compute(), {buffer, hidden})}},
                0);
    ExpectEqual({OpKind::kPermuteGrad,
                 {},
                 {Compute({buffer, hidden}), slot_value},
                 {Empty(compute(), {rows, hidden})}},
                Loose());
    ExpectEqual({OpKind::kCombine,
                 {},
                 {Compute({buffer, hidden}), slot_value, Floats({rows, kChoices})},
                 {Empty(compute(), {rows, hidden})}},
                Loose());
    ExpectEqual(
        {OpKind::kCombineGrad,
         {},
         {Compute({rows, hidden}), Compute({buffer, hidden}), slot_value, Floats({rows, kChoices})},
         {Empty(compute(), {buffer, hidden}), Empty(DType::kFloat32, {rows, kChoices})}},
        Loose());
  }
}

}  // namespace
}  // namespace troupe::kernels
