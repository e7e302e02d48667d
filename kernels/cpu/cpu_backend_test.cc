// Every CPU kernel at every level this processor runs, in both compute dtypes, against the float64
// reference on fresh random inputs: extents of 1, odd ones, ones beside the vector width, and usual
// ones.
#include "kernels/cpu/cpu_backend.h"

#include <gtest/gtest.h>

#include <cmath>

#include "kernels/reference/reference_backend.h"
#include "kernels/testing.h"
#include "model/program/control_word.h"

namespace troupe::kernels {
namespace {

using model::DType;
using model::OpKind;

struct Setting {
  cpu::Level level;
  DType compute;
  int threads;
};

std::vector<Setting> Settings() {
  std::vector<Setting> settings;
  for (int level = 0; level <= static_cast<int>(cpu::HighestLevel()); ++level) {
    for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
      for (const int threads : {1, 2}) {
        settings.push_back({static_cast<cpu::Level>(level), dtype, threads});
      }
    }
  }
  return settings;
}

class CpuKernel : public testing::TestWithParam<Setting> {
 protected:
  CpuKernel() {
    CpuOptions options{GetParam().threads, GetParam().level};
    backend_ = CpuBackend::Make(options).value();
  }

  DType compute() const { return GetParam().compute; }
  TestValue Compute(std::vector<int64_t> extents, double scale = 1.0) {
    return Random(compute(), std::move(extents), scale);
  }
  TestValue Floats(std::vector<int64_t> extents, double scale = 1.0) {
    return Random(DType::kFloat32, std::move(extents), scale);
  }
  TestValue Ints(int64_t count, int64_t low, int64_t high) {
    return {DType::kInt32, {count}, random_.Integers(count, low, high)};
  }
  TestValue Random64(std::vector<int64_t> extents) {
    return Random(DType::kFloat64, std::move(extents), 1.0);
  }
  // Slack of sums of a few terms with a few results: in float32 they may all cancel.
  double Loose() const { return compute() == DType::kBFloat16 ? 4 : 4096; }
  static TestValue Empty(DType dtype, std::vector<int64_t> extents) {
    return {dtype, std::move(extents), {}};
  }

  // Runs `op` on both and expects every output within `slack` units in the last place of its dtype,
  // relative to the output's largest element. Twice on the CPU must give the same bits.
  void ExpectEqual(const TestOp& op, double slack, const RunOptions& options = {}) {
    ReferenceBackend reference;
    // The reference works on the rounded inputs that the kernels see.
    TestOp rounded = op;
    const TestResult actual = RunOp(*backend_, op, options);
    const TestResult expected = RunOp(reference, rounded, options);
    for (size_t i = 0; i < op.outputs.size(); ++i) {
      const double unit = op.outputs[i].dtype == DType::kBFloat16 || compute() == DType::kBFloat16
                              ? 0x1.0p-8
                              : 0x1.0p-23;
      EXPECT_LE(RelativeError(actual.outputs[i], expected.outputs[i]), slack * unit)
          << "output " << i << " of " << Shapes(op);
    }
    EXPECT_EQ(RunOp(*backend_, op, options).outputs, actual.outputs) << Shapes(op);
  }

  static std::string Shapes(const TestOp& op) {
    std::string text = model::Name(op.kind);
    for (const TestValue& value : op.inputs) {
      text += " [";
      for (const int64_t extent : value.extents) text += std::to_string(extent) + ",";
      text += "]";
    }
    return text;
  }

  TestRandom random_;
  std::unique_ptr<CpuBackend> backend_;

 private:
  TestValue Random(DType dtype, std::vector<int64_t> extents, double scale) {
    int64_t count = 1;
    for (const int64_t extent : extents) count *= extent;
    return {dtype, std::move(extents), random_.Normals(count, scale)};
  }
};

const std::vector<std::pair<int64_t, int64_t>> kShapes = {{1, 1},  {1, 7},    {3, 16},
                                                          {5, 33}, {65, 129}, {96, 256}};

TEST_P(CpuKernel, EmbeddingTakesRowsAndZerosForIdsOfOtherRanks) {
  for (const auto& [rows, hidden] : kShapes) {
    ExpectEqual({OpKind::kEmbedding,
                 model::VocabAttributes{5},
                 {Ints(rows, 0, 30), Compute({17, hidden})},
                 {Empty(compute(), {rows, hidden})}},
                0);
  }
}

TEST_P(CpuKernel, EmbeddingGradAddsRepeatedTokens) {
  for (const auto& [rows, hidden] : kShapes) {
    const TestOp op{OpKind::kEmbeddingGrad,
                    model::VocabAttributes{5},
                    {Ints(rows, 0, 30), Compute({rows, hidden})},
                    {Floats({17, hidden})},
                    true};
    ExpectEqual(op, 8);
    ExpectEqual(op, 8, {.first_microbatch = true});
  }
}

TEST_P(CpuKernel, RmsNormMatches) {
  for (const auto& [rows, hidden] : kShapes) {
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

TEST_P(CpuKernel, RmsNormGradMatchesWithAndWithoutResidual) {
  for (const auto& [rows, hidden] : kShapes) {
    TestValue rstd = Floats({rows});
    for (double& value : rstd.numbers)
      value = 0.1 + 0.05 * std::abs(value);  // no cancellation at H = 1
    TestOp op{OpKind::kRmsNormGrad,
              model::NormAttributes{1e-5},
              {Compute({rows, hidden}), Compute({rows, hidden}), Floats({hidden}), rstd},
              {Empty(compute(), {rows, hidden}), Floats({hidden})},
              true};
    ExpectEqual(op, 32);
    op.inputs.push_back(Compute({rows, hidden}));
    ExpectEqual(op, 32, {.first_microbatch = true});
  }
}

TEST_P(CpuKernel, AddMatchesInPlaceToo) {
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

TEST_P(CpuKernel, CastRoundsToNearestEven) {
  for (const int64_t count : {1, 15, 16, 17, 1000}) {
    TestValue x = Floats({count});
    x.numbers[0] = 1.0 + 0x1.0p-8;  // half-way, to even: 1
    const TestOp op{OpKind::kCast, {}, {x}, {Empty(DType::kBFloat16, {count})}};
    EXPECT_EQ(RunOp(*backend_, op).outputs[0][0], 1.0);
    ExpectEqual(op, 0);  // the reference rounds when it is read
  }
}

TEST_P(CpuKernel, ProductsMatch) {
  struct Shape {
    int64_t rows, k, n;
  };
  for (const auto& [rows, k, n] :
       std::vector<Shape>{{1, 1, 1}, {3, 5, 7}, {33, 17, 65}, {64, 96, 1100}, {130, 64, 48}}) {
    const double slack = 8 + std::sqrt(static_cast<double>(k + n + rows));
    ExpectEqual(
        {OpKind::kMatmul, {}, {Compute({rows, k}), Compute({n, k})}, {Empty(compute(), {rows, n})}},
        slack);
    ExpectEqual({OpKind::kMatmulGradInput,
                 {},
                 {Compute({rows, n}), Compute({n, k})},
                 {Empty(compute(), {rows, k})}},
                slack);
    const TestOp gradient{OpKind::kMatmulGradWeight,
                          {},
                          {Compute({rows, n}), Compute({rows, k})},
                          {Floats({n, k})},
                          true};
    ExpectEqual(gradient, slack);
    ExpectEqual(gradient, slack, {.first_microbatch = true});
  }
}

TEST_P(CpuKernel, RopeTurnsQueriesAndKeysAndBack) {
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

struct AttentionShape {
  int64_t samples, tokens, q, g, d;
};
const std::vector<AttentionShape> kAttention = {{1, 1, 1, 1, 1},    {2, 3, 2, 1, 5},
                                                {1, 65, 4, 2, 16},  {2, 63, 3, 3, 33},
                                                {1, 200, 2, 1, 64}, {3, 129, 6, 2, 8}};

TEST_P(CpuKernel, AttentionMatches) {
  for (const auto& [samples, tokens, q, g, d] : kAttention) {
    const int64_t rows = samples * tokens;
    ExpectEqual({OpKind::kAttention,
                 model::AttentionAttributes{q, g, d, tokens, {}},
                 {Compute({rows, (q + 2 * g) * d})},
                 {Empty(compute(), {rows, q * d}), Empty(DType::kFloat32, {rows, q})}},
                16);
  }
}

TEST_P(CpuKernel, AttentionGradMatches) {
  for (const auto& [samples, tokens, q, g, d] : kAttention) {
    const int64_t rows = samples * tokens;
    const model::AttentionAttributes attributes{q, g, d, tokens, {}};
    const TestValue qkv = Compute({rows, (q + 2 * g) * d});
    // o and lse belong to qkv: those of the kernel itself.
    const TestResult forward =
        RunOp(*backend_, {OpKind::kAttention,
                          attributes,
                          {qkv},
                          {Empty(compute(), {rows, q * d}), Empty(DType::kFloat32, {rows, q})}});
    ExpectEqual({OpKind::kAttentionGrad,
                 attributes,
                 {Compute({rows, q * d}),
                  qkv,
                  {compute(), {rows, q * d}, forward.outputs[0]},
                  {DType::kFloat32, {rows, q}, forward.outputs[1]}},
                 {Empty(compute(), {rows, (q + 2 * g) * d})}},
                32);
  }
}

TEST_P(CpuKernel, AttentionWithinDocumentsMatches) {
  for (const auto& [samples, tokens, q, g, d] : kAttention) {
    const int64_t rows = samples * tokens;
    model::AttentionAttributes attributes{q, g, d, tokens, {}};
    attributes.mask.kind = model::Mask::Kind::kDocument;
    const TestValue qkv = Compute({rows, (q + 2 * g) * d});
    const TestValue documents{DType::kInt32, {rows}, random_.Documents(samples, tokens)};
    const TestOp op{OpKind::kAttention,
                    attributes,
                    {qkv, documents},
                    {Empty(compute(), {rows, q * d}), Empty(DType::kFloat32, {rows, q})}};
    ExpectEqual(op, 16);
    const TestResult forward = RunOp(*backend_, op);
    ExpectEqual({OpKind::kAttentionGrad,
                 attributes,
                 {Compute({rows, q * d}),
                  qkv,
                  {compute(), {rows, q * d}, forward.outputs[0]},
                  {DType::kFloat32, {rows, q}, forward.outputs[1]},
                  documents},
                 {Empty(compute(), {rows, (q + 2 * g) * d})}},
                32);
  }
}

TEST_P(CpuKernel, SwiGluMatchesAlsoFarFromZero) {
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

TEST_P(CpuKernel, SoftmaxStatisticsAndTheirGradientMatch) {
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

TEST_P(CpuKernel, CrossEntropyMatches) {
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
    ExpectEqual(
        {OpKind::kCrossEntropyGrad, model::LossAttributes{}, {sums, weights}, {Empty(DType::kFloat32, {2, rows})}}, 4);
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

// --- Mixture of experts.

TEST_P(CpuKernel, RouterProductsMatch) {
  for (const int64_t experts : {1, 4, 9}) {
    for (const auto& [rows, hidden] : kShapes) {
      model::RouterAttributes router;
      router.compute = compute();
      ExpectEqual({OpKind::kRouterLogits,
                   router,
                   {Compute({rows, hidden}), Floats({experts, hidden})},
                   {Empty(DType::kFloat32, {rows, experts})}},
                  Loose());
      ExpectEqual({OpKind::kRouterLogitsGradInput,
                   router,
                   {Floats({rows, experts}), Floats({experts, hidden})},
                   {Empty(compute(), {rows, hidden})}},
                  Loose());
      for (const bool first : {false, true}) {
        ExpectEqual({OpKind::kRouterLogitsGradWeight,
                     router,
                     {Floats({rows, experts}), Compute({rows, hidden})},
                     {Floats({experts, hidden})},
                     first},
                    Loose(), {.first_microbatch = true});
      }
    }
  }
}

TEST_P(CpuKernel, RoutersMatch) {
  if (compute() == DType::kBFloat16) GTEST_SKIP() << "routers have no compute dtype";
  for (const auto& [experts, top_k] :
       std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {4, 2}, {9, 3}, {16, 16}}) {
    for (const int variant : {0, 1, 2, 3}) {
      model::RouterAttributes router;
      router.score = variant % 2 ? model::RouterScore::kSigmoid : model::RouterScore::kSoftmax;
      router.normalise = variant >= 2;
      router.experts = experts;
      router.top_k = top_k;
      // Rows [4, 25) of the 35 rows of five samples, of which this rank has 7 of 14 tokens each.
      router.tokens = 14;
      router.local_tokens = 7;
      router.first_row = 4;
      router.capacity = variant == 3 ? 2 : 0;
      router.aux_loss_coef = 0.3;
      router.z_loss_coef = 0.2;
      const int64_t rows = 21, samples = 5, lanes = experts + 1;
      const TestValue logits{DType::kFloat32, {rows, experts}, random_.Logits(rows, experts)};
      TestOp op{OpKind::kRouterTopK,
                router,
                {logits},
                {Empty(DType::kFloat32, {rows, top_k}), Empty(DType::kInt32, {rows, top_k}),
                 Empty(DType::kInt32, {rows, top_k}), Empty(DType::kInt32, {experts})}};
      ExpectEqual(op, 16);
      ReferenceBackend reference;
      const TestResult choice = RunOp(reference, op);
      for (int i : {1, 2, 3}) {
        EXPECT_EQ(RunOp(*backend_, op).outputs[i], choice.outputs[i]) << "output " << i;
      }
      const TestValue chosen{DType::kInt32, {rows, top_k}, choice.outputs[1]};
      ExpectEqual({OpKind::kRouterTopKGrad,
                   router,
                   {Floats({rows, top_k}), logits, chosen},
                   {Empty(DType::kFloat32, {rows, experts})}},
                  experts == 1 ? INFINITY : 256);
      // Weights that are exact, so that their sums are.
      const TestOp load{
          OpKind::kRouterLoad,
          router,
          {chosen, {DType::kFloat32, {35}, random_.Integers(35, 0, 3)}},
          {Empty(DType::kFloat32, {samples, lanes})}};
      const TestValue own{DType::kFloat32, {samples, lanes}, RunOp(reference, load).outputs[0]};
      EXPECT_EQ(RunOp(*backend_, load).outputs[0], own.numbers);
      // Of the experts from the second on; some choices were dropped.
      model::RouterAttributes of_rank = router;
      of_rank.first_expert = experts > 1 ? 1 : 0;
      of_rank.local_experts = experts > 1 ? experts - 1 : 1;
      const TestOp slots{OpKind::kRouterSlots,
                         of_rank,
                         {chosen, {DType::kInt32, {rows, top_k}, choice.outputs[2]}},
                         {Empty(DType::kInt32, {rows, top_k}),
                          Empty(DType::kInt32, {of_rank.local_experts})}};
      const TestResult own_slots = RunOp(reference, slots);
      EXPECT_EQ(RunOp(*backend_, slots).outputs, own_slots.outputs);
      EXPECT_EQ(own_slots.outputs[1],
                std::vector<double>(choice.outputs[3].begin() + of_rank.first_expert,
                                    choice.outputs[3].end()));
      TestValue whole = own;
      for (double& number : whole.numbers) number += static_cast<double>(random_.Integer(0, 9));
      for (const bool first : {false, true}) {
        ExpectEqual({OpKind::kRouterLoss,
                     router,
                     {logits, own, whole, {DType::kInt32, {experts}, choice.outputs[3]}},
                     {Random64({model::kRouterLanes + experts})},
                     first},
                    64, {.first_microbatch = true});
      }
      ExpectEqual({OpKind::kRouterLossGrad,
                   router,
                   {logits, whole},
                   {Empty(DType::kFloat32, {rows, experts})}},
                  256);
      op.inputs.push_back({DType::kFloat32, {experts}, random_.Normals(experts)});
      EXPECT_EQ(RunOp(*backend_, op).outputs[1], RunOp(reference, op).outputs[1]) << "with a bias";
    }
  }
}

TEST_P(CpuKernel, RouterBiasesMatchAndAreTheFormula) {
  if (compute() == DType::kBFloat16) GTEST_SKIP() << "routers have no compute dtype";
  constexpr double kRate = 0x1.0p-7;  // exact in both dtypes
  ReferenceBackend reference;
  for (const int64_t experts : {1, 3, 64, 129}) {
    for (const double nonfinite : {0.0, 3.0}) {
      std::vector<double> control(model::kControlLanes, 0.0), totals = random_.Normals(3);
      control[model::kLaneWeight] = 2;
      control[model::kLaneNonfinite] = nonfinite;
      const std::vector<double> routed = random_.Integers(experts, 0, 4);
      totals.insert(totals.end(), routed.begin(), routed.end());
      // Multiples of the rate: what is added to them is not rounded.
      std::vector<double> bias = random_.Integers(experts, -50, 50), expected;
      double mean = 0;
      for (const double count : routed) mean += count;
      mean /= static_cast<double>(experts);
      for (int64_t e = 0; e < experts; ++e) {
        bias[e] *= kRate;
        const double sign = mean > routed[e] ? 1 : mean < routed[e] ? -1 : 0;
        expected.push_back(nonfinite != 0 ? bias[e] : bias[e] + kRate * sign);
      }
      const TestOp op{OpKind::kRouterBias,
                      model::RouterBiasAttributes{kRate},
                      {{DType::kFloat64, {model::kControlLanes}, control},
                       {DType::kFloat64, {model::kRouterLanes + experts}, totals},
                       {DType::kFloat32, {experts}, bias}},
                      {}};
      EXPECT_EQ(RunOp(*backend_, op).inputs[2], expected) << experts << " experts";
      EXPECT_EQ(RunOp(reference, op).inputs[2], expected) << experts << " experts";
    }
  }
}

TEST_P(CpuKernel, RoutedRowsOfAGroupOfOneAreCopiedAsFarAsCountsTell) {
  for (const OpKind kind : {OpKind::kGatherRouted, OpKind::kScatterRouted}) {
    model::CollectiveAttributes attributes{model::GroupOf(model::Axis::kTensor),
                                           model::CollectivePurpose::kSequence};
    TestOp op{kind,
              attributes,
              {Compute({9, 5}), {DType::kInt32, {4}, {2, 0, 3, 1}}},
              {Empty(compute(), {9, 5})}};
    op.outputs[0].numbers = random_.Integers(45, 0, 9);
    const TestResult result = RunOp(*backend_, op);
    for (size_t i = 0; i < 45; ++i) {
      EXPECT_EQ(result.outputs[0][i], i < 30 ? result.inputs[0][i] : op.outputs[0].numbers[i])
          << "element " << i << " of " << model::Name(kind);
    }
  }
}

TEST_P(CpuKernel, PermuteAndCombineMatchWithDroppedChoices) {
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
    ExpectEqual({OpKind::kCombineGrad,
                 {},
                 {Compute({rows, hidden}), Compute({buffer, hidden}), slot_value,
                  Floats({rows, kChoices})},
                 {Empty(compute(), {buffer, hidden}), Empty(DType::kFloat32, {rows, kChoices})}},
                Loose());
  }
}

TEST_P(CpuKernel, GroupedProductsMatchAlsoOfExpertsWithoutRows) {
  constexpr int64_t kExperts = 3;
  for (const std::vector<double>& counts :
       {std::vector<double>{0, 1, 0}, {5, 0, 17, 0, 0, 83}, {0, 0, 0}, {300, 0, 3}}) {
    int64_t rows = 2;  // and some that are not used
    for (const double count : counts) rows += static_cast<int64_t>(count);
    const int64_t k = 33, n = 18;
    const model::GroupedAttributes grouped{2 * kExperts, kExperts, rows, true};
    const TestValue count_value{DType::kInt32, {static_cast<int64_t>(counts.size())}, counts};
    ExpectEqual({OpKind::kGroupedMatmul,
                 grouped,
                 {Compute({rows, k}), Compute({kExperts * n, k}), count_value},
                 {Empty(compute(), {rows, n})}},
                16);
    ExpectEqual({OpKind::kGroupedMatmulGradInput,
                 grouped,
                 {Compute({rows, n}), Compute({kExperts * n, k}), count_value},
                 {Empty(compute(), {rows, k})}},
                16);
    for (const bool first : {false, true}) {
      ExpectEqual({OpKind::kGroupedMatmulGradWeight,
                   grouped,
                   {Compute({rows, n}), Compute({rows, k}), count_value},
                   {Floats({kExperts * n, k})},
                   first},
                  64, {.first_microbatch = true});
    }
    ExpectEqual({OpKind::kSwiGlu,
                 {},
                 {Compute({rows, n}), count_value},
                 {Empty(compute(), {rows, n / 2})}},
                16);
    ExpectEqual({OpKind::kSwiGluGrad,
                 {},
                 {Compute({rows, n / 2}), Compute({rows, n}), count_value},
                 {Empty(compute(), {rows, n})}},
                32);
  }
}

std::string SettingName(const testing::TestParamInfo<Setting>& info) {
  return std::string(cpu::Name(info.param.level)) + "_" + model::Name(info.param.compute) +
         "_threads" + std::to_string(info.param.threads);
}

INSTANTIATE_TEST_SUITE_P(EveryLevel, CpuKernel, testing::ValuesIn(Settings()), SettingName);

TEST(CpuBackend, RefusesWhatItCannotBe) {
  EXPECT_FALSE(CpuBackend::Make({0, std::nullopt}).ok());
  EXPECT_FALSE(cpu::ParseLevel("avx1024").ok());
  EXPECT_EQ(cpu::ParseLevel("avx512_bf16").value(), cpu::Level::kAvx512Bf16);
}

}  // namespace
}  // namespace troupe::kernels
