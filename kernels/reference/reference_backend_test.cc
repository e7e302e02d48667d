// Compares the reference's derivatives with finite differences of its forward operations, in
// float64 on fresh random inputs.
#include "kernels/reference/reference_backend.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>

#include "kernels/program_run.h"
#include "kernels/testing.h"
#include "model/program/control_word.h"
#include "model/testing.h"

namespace troupe::kernels {
namespace {

using model::DType;
using model::OpKind;

constexpr double kStep = 1e-5;
constexpr double kTolerance = 1e-7;

// float64 values are stored unrounded, so that a difference of 1e-5 is preserved.
TestValue Doubles(std::vector<int64_t> extents, std::vector<double> numbers) {
  return {DType::kFloat64, std::move(extents), std::move(numbers)};
}
TestValue Empty(std::vector<int64_t> extents) { return {DType::kFloat64, std::move(extents), {}}; }

double Dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// The gradient of `loss` at `x` by central differences.
std::vector<double> Differences(const std::vector<double>& x,
                                const std::function<double(const std::vector<double>&)>& loss) {
  std::vector<double> gradient(x.size());
  std::vector<double> moved = x;
  for (size_t i = 0; i < x.size(); ++i) {
    moved[i] = x[i] + kStep;
    const double above = loss(moved);
    moved[i] = x[i] - kStep;
    gradient[i] = (above - loss(moved)) / (2 * kStep);
    moved[i] = x[i];
  }
  return gradient;
}

class ReferenceGradient : public testing::Test {
 protected:
  TestResult Run(const TestOp& op) { return RunOp(backend_, op); }

  // The derivative of Σ outputs[0] · dy with respect to input `input` of `op`.
  std::vector<double> OfInput(const TestOp& op, int input, const std::vector<double>& dy) {
    return Differences(op.inputs[input].numbers, [&](const std::vector<double>& moved) {
      TestOp changed = op;
      changed.inputs[input].numbers = moved;
      return Dot(Run(changed).outputs[0], dy);
    });
  }

  TestRandom random_;
  ReferenceBackend backend_;
};

const std::vector<std::pair<int64_t, int64_t>> kShapes = {{1, 1}, {1, 5}, {3, 7}, {4, 8}};

TEST_F(ReferenceGradient, OfEmbedding) {
  for (const auto& [rows, hidden] : kShapes) {
    const TestValue tokens{DType::kInt32, {rows}, random_.Integers(rows, 0, 8)};
    const TestOp op{OpKind::kEmbedding,
                    model::VocabAttributes{2},
                    {tokens, Doubles({5, hidden}, random_.Normals(5 * hidden))},
                    {Empty({rows, hidden})}};
    const std::vector<double> dy = random_.Normals(rows * hidden);
    const TestResult gradient = Run({OpKind::kEmbeddingGrad,
                                     model::VocabAttributes{2},
                                     {tokens, Doubles({rows, hidden}, dy)},
                                     {Empty({5, hidden})}});
    EXPECT_LE(RelativeError(gradient.outputs[0], OfInput(op, 1, dy)), kTolerance);
  }
}

TEST_F(ReferenceGradient, OfRmsNorm) {
  const model::NormAttributes attributes{1e-5};
  for (const auto& [rows, hidden] : kShapes) {
    const TestValue x = Doubles({rows, hidden}, random_.Normals(rows * hidden));
    const TestValue w = Doubles({hidden}, random_.Normals(hidden));
    const TestOp op{OpKind::kRmsNorm, attributes, {x, w}, {Empty({rows, hidden}), Empty({rows})}};
    const std::vector<double> dy = random_.Normals(rows * hidden);
    const TestValue rstd = Doubles({rows}, Run(op).outputs[1]);
    const TestValue dres = Doubles({rows, hidden}, random_.Normals(rows * hidden));
    TestOp gradient{OpKind::kRmsNormGrad,
                    attributes,
                    {Doubles({rows, hidden}, dy), x, w, rstd},
                    {Empty({rows, hidden}), Empty({hidden})}};
    const TestResult plain = Run(gradient);
    // With one element the norm is sign(x): its gradient is nearly 0 and lost in the differences'
    // error, so compare absolutely.
    const std::vector<double> dx = OfInput(op, 0, dy);
    for (size_t i = 0; i < dx.size(); ++i)
      EXPECT_NEAR(plain.outputs[0][i], dx[i], 1e-5 * (1 + std::abs(dx[i])));
    EXPECT_LE(RelativeError(plain.outputs[1], OfInput(op, 1, dy)), kTolerance);
    gradient.inputs.push_back(dres);
    const TestResult with_residual = Run(gradient);
    for (size_t i = 0; i < dx.size(); ++i) {
      EXPECT_NEAR(with_residual.outputs[0][i], plain.outputs[0][i] + dres.numbers[i], 1e-12);
    }
  }
}

TEST_F(ReferenceGradient, OfAddRmsNormIsThatOfTheSum) {
  const model::NormAttributes attributes{1e-5};
  const std::vector<double> a = random_.Normals(12), b = random_.Normals(12),
                            w = random_.Normals(4);
  std::vector<double> sum(12);
  for (int i = 0; i < 12; ++i) sum[i] = a[i] + b[i];
  const TestResult fused = Run({OpKind::kAddRmsNorm,
                                attributes,
                                {Doubles({3, 4}, a), Doubles({3, 4}, b), Doubles({4}, w)},
                                {Empty({3, 4}), Empty({3, 4}), Empty({3})}});
  const TestResult apart = Run({OpKind::kRmsNorm,
                                attributes,
                                {Doubles({3, 4}, sum), Doubles({4}, w)},
                                {Empty({3, 4}), Empty({3})}});
  EXPECT_EQ(fused.outputs[0], sum);
  EXPECT_EQ(fused.outputs[1], apart.outputs[0]);
  EXPECT_EQ(fused.outputs[2], apart.outputs[1]);
}

TEST_F(ReferenceGradient, OfMatmul) {
  struct Shape {
    int64_t rows, k, n;
  };
  for (const auto& [rows, k, n] : std::vector<Shape>{{1, 1, 1}, {3, 5, 2}, {4, 3, 7}}) {
    const TestValue x = Doubles({rows, k}, random_.Normals(rows * k));
    const TestValue w = Doubles({n, k}, random_.Normals(n * k));
    const TestOp op{OpKind::kMatmul, {}, {x, w}, {Empty({rows, n})}};
    const std::vector<double> dy = random_.Normals(rows * n);
    const TestResult dx =
        Run({OpKind::kMatmulGradInput, {}, {Doubles({rows, n}, dy), w}, {Empty({rows, k})}});
    const TestResult dw =
        Run({OpKind::kMatmulGradWeight, {}, {Doubles({rows, n}, dy), x}, {Empty({n, k})}});
    EXPECT_LE(RelativeError(dx.outputs[0], OfInput(op, 0, dy)), kTolerance);
    EXPECT_LE(RelativeError(dw.outputs[0], OfInput(op, 1, dy)), kTolerance);
  }
}

TEST_F(ReferenceGradient, OfRopeIsTheInverseRotation) {
  const model::RopeScaling llama3{8.0, 1.0, 4.0, 16};
  for (const model::RopeScaling& scaling : {model::RopeScaling{}, llama3}) {
    model::RopeAttributes attributes{2, 1, 6, 100.0, scaling, false};
    const int64_t rows = 5, width = 4 * 6;
    const TestValue positions{DType::kInt32, {rows}, random_.Integers(rows, 0, 40)};
    const TestOp op{OpKind::kRope,
                    attributes,
                    {Doubles({rows, width}, random_.Normals(rows * width)), positions},
                    {Empty({rows, width})}};
    const std::vector<double> dy = random_.Normals(rows * width);
    attributes.inverse = true;
    const TestResult gradient = Run({OpKind::kRope,
                                     attributes,
                                     {Doubles({rows, width}, dy), positions},
                                     {Empty({rows, width})}});
    EXPECT_LE(RelativeError(gradient.outputs[0], OfInput(op, 0, dy)), kTolerance);
  }
}

TEST_F(ReferenceGradient, OfAttention) {
  struct Shape {
    int64_t samples, tokens, q, g, d;
  };
  for (const auto& [samples, tokens, q, g, d] :
       std::vector<Shape>{{1, 1, 1, 1, 1}, {2, 3, 2, 1, 3}, {1, 5, 4, 2, 2}}) {
    const int64_t rows = samples * tokens, width = (q + 2 * g) * d;
    const model::AttentionAttributes attributes{q, g, d, tokens, {}};
    const TestValue qkv = Doubles({rows, width}, random_.Normals(rows * width));
    const TestOp op{
        OpKind::kAttention, attributes, {qkv}, {Empty({rows, q * d}), Empty({rows, q})}};
    const TestResult forward = Run(op);
    const std::vector<double> dy = random_.Normals(rows * q * d);
    const TestResult gradient =
        Run({OpKind::kAttentionGrad,
             attributes,
             {Doubles({rows, q * d}, dy), qkv, Doubles({rows, q * d}, forward.outputs[0]),
              Doubles({rows, q}, forward.outputs[1])},
             {Empty({rows, width})}});
    EXPECT_LE(RelativeError(gradient.outputs[0], OfInput(op, 0, dy)), kTolerance);
  }
}

TEST_F(ReferenceGradient, OfAttentionWithinDocuments) {
  struct Shape {
    int64_t samples, tokens, q, g, d;
  };
  for (const auto& [samples, tokens, q, g, d] :
       std::vector<Shape>{{1, 1, 1, 1, 1}, {2, 5, 2, 1, 3}, {1, 7, 4, 2, 2}}) {
    const int64_t rows = samples * tokens, width = (q + 2 * g) * d;
    model::AttentionAttributes attributes{q, g, d, tokens, {}};
    attributes.mask.kind = model::Mask::Kind::kDocument;
    const TestValue qkv = Doubles({rows, width}, random_.Normals(rows * width));
    const TestValue documents{DType::kInt32, {rows}, random_.Documents(samples, tokens)};
    const TestOp op{OpKind::kAttention,
                    attributes,
                    {qkv, documents},
                    {Empty({rows, q * d}), Empty({rows, q})}};
    const TestResult forward = Run(op);
    // Each document alone, as its own sample.
    for (int64_t begin = 0; begin < rows;) {
      int64_t end = begin + 1;
      while (end < rows && end % tokens != 0 &&
             documents.numbers[end] == documents.numbers[begin]) {
        ++end;
      }
      const auto part = [&](const std::vector<double>& of, int64_t columns) {
        return std::vector<double>(of.begin() + begin * columns, of.begin() + end * columns);
      };
      const int64_t count = end - begin;
      const TestResult alone = Run({OpKind::kAttention,
                                    model::AttentionAttributes{q, g, d, count, {}},
                                    {Doubles({count, width}, part(qkv.numbers, width))},
                                    {Empty({count, q * d}), Empty({count, q})}});
      EXPECT_EQ(part(forward.outputs[0], q * d), alone.outputs[0]);
      EXPECT_EQ(part(forward.outputs[1], q), alone.outputs[1]);
      begin = end;
    }
    const std::vector<double> dy = random_.Normals(rows * q * d);
    const TestResult gradient =
        Run({OpKind::kAttentionGrad,
             attributes,
             {Doubles({rows, q * d}, dy), qkv, Doubles({rows, q * d}, forward.outputs[0]),
              Doubles({rows, q}, forward.outputs[1]), documents},
             {Empty({rows, width})}});
    EXPECT_LE(RelativeError(gradient.outputs[0], OfInput(op, 0, dy)), kTolerance);
  }
}

TEST_F(ReferenceGradient, OfSwiGlu) {
  for (const auto& [rows, ffn] : kShapes) {
    const TestValue gu = Doubles({rows, 2 * ffn}, random_.Normals(2 * rows * ffn));
    const TestOp op{OpKind::kSwiGlu, {}, {gu}, {Empty({rows, ffn})}};
    const std::vector<double> dy = random_.Normals(rows * ffn);
    const TestResult gradient =
        Run({OpKind::kSwiGluGrad, {}, {Doubles({rows, ffn}, dy), gu}, {Empty({rows, 2 * ffn})}});
    EXPECT_LE(RelativeError(gradient.outputs[0], OfInput(op, 0, dy)), kTolerance);
  }
}

// The loss over a vocabulary split over two tensor ranks, and its derivative through the whole
// chain.
TEST_F(ReferenceGradient, OfTheLossOverAShardedVocabulary) {
  constexpr int64_t kRows = 4, kSlice = 5;
  const TestValue targets{DType::kInt32, {kRows}, random_.Integers(kRows, 0, 2 * kSlice - 1)};
  const TestValue weights = Doubles({kRows}, {1.0, 0.0, 0.5, 2.0});
  std::vector<double> logits[2] = {random_.Normals(kRows * kSlice, 3),
                                   random_.Normals(kRows * kSlice, 3)};
  struct Slice {
    std::vector<double> max, sums;
  };
  struct Whole {
    Slice slices[2];
    std::vector<double> global_max, sums;
  };
  const auto combine = [&](const std::vector<double>& first, const std::vector<double>& second) {
    Whole whole;
    const std::vector<double>* both[2] = {&first, &second};
    for (int s = 0; s < 2; ++s) {
      const TestResult stats = Run({OpKind::kSoftmaxStats,
                                    model::VocabAttributes{s * kSlice},
                                    {Doubles({kRows, kSlice}, *both[s]), targets},
                                    {Empty({kRows}), Empty({2, kRows})}});
      whole.slices[s] = {stats.outputs[0], stats.outputs[1]};
    }
    for (int r = 0; r < kRows; ++r)
      whole.global_max.push_back(std::max(whole.slices[0].max[r], whole.slices[1].max[r]));
    whole.sums.assign(2 * kRows, 0.0);
    for (const Slice& slice : whole.slices) {
      const TestResult rescaled =
          Run({OpKind::kSoftmaxRescale,
               {},
               {Doubles({2, kRows}, slice.sums), Doubles({kRows}, slice.max),
                Doubles({kRows}, whole.global_max)},
               {Empty({2, kRows})}});
      for (int i = 0; i < 2 * kRows; ++i) whole.sums[i] += rescaled.outputs[0][i];
    }
    return whole;
  };
  const Whole whole = combine(logits[0], logits[1]);
  for (const double z : {0.0, 0.3}) {
    const auto loss = [&](const Whole& of) {
      double sum =
          Run({OpKind::kCrossEntropy,
               model::LossAttributes{z},
               {Doubles({kRows}, of.global_max), Doubles({2, kRows}, of.sums), weights},
               {Empty({2})}})
              .outputs[0][0];
      for (int r = 0; r < kRows; ++r) {
        const double lse = std::log(of.sums[r]) + of.global_max[r];
        sum += z * weights.numbers[r] * lse * lse;
      }
      return sum;
    };
    std::vector<TestValue> read = {Doubles({2, kRows}, whole.sums), weights};
    if (z > 0) read.push_back(Doubles({kRows}, whole.global_max));
    const TestResult dsums =
        Run({OpKind::kCrossEntropyGrad, model::LossAttributes{z}, read, {Empty({2, kRows})}});
    for (int s = 0; s < 2; ++s) {
      const TestResult rescaled =
          Run({OpKind::kSoftmaxRescaleGrad,
               {},
               {Doubles({2, kRows}, dsums.outputs[0]), Doubles({kRows}, whole.slices[s].max),
                Doubles({kRows}, whole.global_max)},
               {Empty({2, kRows})}});
      const TestResult gradient =
          Run({OpKind::kSoftmaxStatsGrad,
               model::VocabAttributes{s * kSlice},
               {Doubles({kRows, kSlice}, logits[s]), targets, Doubles({kRows}, whole.slices[s].max),
                Doubles({2, kRows}, rescaled.outputs[0])},
               {Empty({kRows, kSlice})}});
      const std::vector<double> differences =
          Differences(logits[s], [&](const std::vector<double>& moved) {
            return loss(s == 0 ? combine(moved, logits[1]) : combine(logits[0], moved));
          });
      EXPECT_LE(RelativeError(gradient.outputs[0], differences), 1e-6);
    }
  }
}

TEST_F(ReferenceGradient, OfTheLossOverAWholeVocabulary) {
  constexpr int64_t kRows = 4, kVocabulary = 7;
  const TestValue targets{DType::kInt32, {kRows}, random_.Integers(kRows, 0, kVocabulary - 1)};
  const TestValue weights = Doubles({kRows}, {1.0, 0.0, 0.5, 2.0});
  const std::vector<double> logits = random_.Normals(kRows * kVocabulary, 3);
  for (const double z : {0.0, 0.3}) {
    const auto run = [&](const std::vector<double>& of) {
      return Run({OpKind::kSoftmaxStatsAndGrad,
                  model::LossAttributes{z},
                  {Doubles({kRows, kVocabulary}, of), targets, weights},
                  {Empty({kRows, kVocabulary}), Empty({kRows}), Empty({2, kRows})}});
    };
    const auto loss = [&](const std::vector<double>& of) {
      const TestResult made = run(of);
      double sum = 0;
      for (int r = 0; r < kRows; ++r) {
        const double lse = std::log(made.outputs[2][r]) + made.outputs[1][r];
        sum += weights.numbers[r] * (lse - made.outputs[2][kRows + r] + z * lse * lse);
      }
      return sum;
    };
    EXPECT_LE(RelativeError(run(logits).outputs[0], Differences(logits, loss)), 1e-6);
  }
}

// --- Mixture of experts.

model::RouterAttributes Router(int64_t experts, int64_t top_k, int64_t tokens) {
  model::RouterAttributes router;
  router.experts = experts;
  router.top_k = top_k;
  router.tokens = tokens;
  router.local_tokens = tokens;
  router.compute = DType::kFloat64;
  return router;
}

// All combinations of router attributes.
std::vector<model::RouterAttributes> Routers() {
  std::vector<model::RouterAttributes> routers;
  for (const auto score : {model::RouterScore::kSoftmax, model::RouterScore::kSigmoid}) {
    for (const bool normalise : {false, true}) {
      for (const int64_t top_k : {1, 2, 5}) {
        model::RouterAttributes router = Router(5, top_k, 3);
        router.score = score;
        router.normalise = normalise;
        router.capacity = normalise ? 2 : 0;
        router.aux_loss_coef = 0.3;
        router.z_loss_coef = normalise ? 0 : 0.2;
        routers.push_back(router);
      }
    }
  }
  return routers;
}

constexpr int64_t kTokens = 6;

TestOp TopK(const model::RouterAttributes& router, std::vector<double> logits) {
  return {OpKind::kRouterTopK,
          router,
          {Doubles({kTokens, router.experts}, std::move(logits))},
          {Empty({kTokens, router.top_k}), Empty({kTokens, router.top_k}),
           Empty({kTokens, router.top_k}), Empty({router.experts})}};
}

TEST_F(ReferenceGradient, OfRouterTopK) {
  for (const model::RouterAttributes& router : Routers()) {
    const TestOp op = TopK(router, random_.Logits(kTokens, router.experts));
    const std::vector<double> dy = random_.Normals(kTokens * router.top_k);
    const TestResult gradient = Run({OpKind::kRouterTopKGrad,
                                     router,
                                     {Doubles({kTokens, router.top_k}, dy), op.inputs[0],
                                      Doubles({kTokens, router.top_k}, Run(op).outputs[1])},
                                     {Empty({kTokens, router.experts})}});
    const std::vector<double> differences = OfInput(op, 0, dy);
    for (size_t i = 0; i < differences.size(); ++i)
      EXPECT_NEAR(gradient.outputs[0][i], differences[i], 1e-8);
  }
}

TEST_F(ReferenceGradient, OfRouterLoss) {
  for (const model::RouterAttributes& router : Routers()) {
    const TestResult choice = Run(TopK(router, random_.Logits(kTokens, router.experts)));
    const TestValue logits = Doubles({kTokens, router.experts}, choice.inputs[0]);
    const TestOp load{OpKind::kRouterLoad,
                      router,
                      {Doubles({kTokens, router.top_k}, choice.outputs[1]),
                       Doubles({kTokens}, {1, 0, 0.5, 2, 1, 1})},
                      {Empty({2, router.experts + 1})}};
    const TestValue whole = Doubles({2, router.experts + 1}, Run(load).outputs[0]);
    EXPECT_EQ(whole.numbers[router.experts], 1.5);
    EXPECT_EQ(whole.numbers[2 * router.experts + 1], 4);
    const int64_t lanes = model::kRouterLanes + router.experts;
    const TestOp op{OpKind::kRouterLoss,
                    router,
                    {logits, whole, whole, Doubles({router.experts}, choice.outputs[3])},
                    {Empty({lanes})}};
    std::vector<double> dy(lanes, 0.0);
    dy[0] = dy[1] = 1;
    const TestResult gradient = Run(
        {OpKind::kRouterLossGrad, router, {logits, whole}, {Empty({kTokens, router.experts})}});
    // If every expert is chosen, the auxiliary loss is constant.
    const std::vector<double> differences = OfInput(op, 0, dy);
    for (size_t i = 0; i < differences.size(); ++i)
      EXPECT_NEAR(gradient.outputs[0][i], differences[i], 1e-8);
  }
}

TEST(RouterLoss, IsTheFormulaOfEachRowTimesItsWeight) {
  ReferenceBackend backend;
  model::RouterAttributes router = Router(2, 1, 2);
  router.aux_loss_coef = 0.5;
  router.z_loss_coef = 0.25;
  // One row of two tokens with p = (3/4, 1/4) and (1/2, 1/2), both routed to expert 0, one dropped.
  const TestResult result =
      RunOp(backend, {OpKind::kRouterLoss,
                      router,
                      {Doubles({2, 2}, {std::log(3.0), 0, 0, 0}), Doubles({1, 3}, {2, 0, 3}),
                       Doubles({1, 3}, {2, 0, 3}), Doubles({2}, {1, 0})},
                      {Empty({5})}});
  const double aux = 0.5 * 2 / (1 * 4.0) * ((0.75 + 0.5) * 2);
  const double z = 0.25 * (std::log(4.0) * std::log(4.0) + std::log(2.0) * std::log(2.0)) / 2;
  EXPECT_NEAR(result.outputs[0][0], 3 * aux, 1e-12);
  EXPECT_NEAR(result.outputs[0][1], 3 * z, 1e-12);
  EXPECT_EQ(result.outputs[0][2], 1);
  EXPECT_EQ(result.outputs[0][3], 2);
  EXPECT_EQ(result.outputs[0][4], 0);
}

// Two samples whose rows are split over three ranks, as in sequence parallelism. Given the load of
// whole samples, the losses of the ranks must add up to that of a single rank.
TEST(RouterLoss, OfPartsOfSamplesAddsUpToThatOfTheWhole) {
  ReferenceBackend backend;
  TestRandom random;
  for (model::RouterAttributes router : Routers()) {
    router.capacity = 0;
    const int64_t experts = router.experts, k = router.top_k, lanes = experts + 1;
    const std::vector<double> logits = random.Logits(kTokens, experts);
    const std::vector<double> weights = {1, 0, 0.5, 2, 1, 1};
    const auto rows = [](const std::vector<double>& all, int64_t begin, int64_t end, int64_t row) {
      return std::vector<double>(all.begin() + begin * row, all.begin() + end * row);
    };
    const std::vector<double> chosen = RunOp(backend, TopK(router, logits)).outputs[1];
    const auto load_of = [&](int64_t begin, int64_t end) {
      router.first_row = begin;
      return RunOp(backend, {OpKind::kRouterLoad,
                             router,
                             {Doubles({end - begin, k}, rows(chosen, begin, end, k)),
                              Doubles({kTokens}, weights)},
                             {Empty({2, lanes})}})
          .outputs[0];
    };
    const std::vector<double> whole = load_of(0, kTokens);
    const auto loss_of = [&](int64_t begin, int64_t end) {
      const TestValue own = Doubles({2, lanes}, load_of(begin, end));
      std::vector<double> kept(experts, 0.0);
      for (int64_t i = begin * k; i < end * k; ++i) kept[static_cast<int64_t>(chosen[i])] += 1;
      const TestValue part =
          Doubles({end - begin, experts}, rows(logits, begin, end, experts));
      std::vector<double> numbers =
          RunOp(backend, {OpKind::kRouterLoss,
                          router,
                          {part, own, Doubles({2, lanes}, whole), Doubles({experts}, kept)},
                          {Empty({model::kRouterLanes + experts})}})
              .outputs[0];
      const std::vector<double> gradient =
          RunOp(backend, {OpKind::kRouterLossGrad,
                          router,
                          {part, Doubles({2, lanes}, whole)},
                          {Empty({end - begin, experts})}})
              .outputs[0];
      return std::pair(std::move(numbers), gradient);
    };
    const auto [totals, gradient] = loss_of(0, kTokens);
    std::vector<double> sums(totals.size(), 0.0), gradients;
    for (const auto& [begin, end] : {std::pair(0, 2), std::pair(2, 5), std::pair(5, 6)}) {
      const auto [part, of_rows] = loss_of(begin, end);
      for (size_t i = 0; i < part.size(); ++i) sums[i] += part[i];
      gradients.insert(gradients.end(), of_rows.begin(), of_rows.end());
    }
    EXPECT_LE(RelativeError(sums, totals), 1e-12);
    EXPECT_LE(RelativeError(gradients, gradient), 1e-12);
  }
}

TEST(RouterTopK, TiesGoToTheLowestExpertAndABiasMovesTheChoiceAlone) {
  ReferenceBackend backend;
  model::RouterAttributes router = Router(4, 2, 1);
  router.normalise = false;
  TestOp op{OpKind::kRouterTopK,
            router,
            {Doubles({1, 4}, {0, 1, 1, 1})},
            {Empty({1, 2}), Empty({1, 2}), Empty({1, 2}), Empty({4})}};
  EXPECT_EQ(RunOp(backend, op).outputs[1], (std::vector<double>{1, 2}));
  op.inputs.push_back(Doubles({4}, {1, 0, 0, 0}));
  const TestResult biased = RunOp(backend, op);
  EXPECT_EQ(biased.outputs[1], (std::vector<double>{0, 1}));
  EXPECT_NEAR(biased.outputs[0][0], 1 / (1 + 3 * std::exp(1.0)), 1e-12);
}

TEST(RouterBias, MovesByTheRateTowardsTheMeanUnlessTheStepIsNotFinite) {
  ReferenceBackend backend;
  std::vector<double> control(model::kControlLanes, 0.0);
  control[model::kLaneWeight] = 1;
  // First the lanes of losses and drops, then 2, 5 and 8 choices with a mean of 5.
  TestOp op{OpKind::kRouterBias,
            model::RouterBiasAttributes{0.25},
            {Doubles({model::kControlLanes}, control), Doubles({6}, {100, 200, 300, 2, 5, 8}),
             Doubles({3}, {0.5, -1, 2})},
            {}};
  EXPECT_EQ(RunOp(backend, op).inputs[2], (std::vector<double>{0.75, -1, 1.75}));
  op.inputs[0].numbers[model::kLaneNonfinite] = 1;
  EXPECT_EQ(RunOp(backend, op).inputs[2], op.inputs[2].numbers);
}

TEST_F(ReferenceGradient, OfPermuteAndCombineWithDroppedChoices) {
  for (const model::RouterAttributes& router : Routers()) {
    const int64_t hidden = 3, choices = kTokens * router.top_k;
    const TestResult choice = Run(TopK(router, random_.Logits(kTokens, router.experts)));
    const TestValue slots{DType::kInt32, {kTokens, router.top_k}, choice.outputs[2]};
    const TestOp permute{
        OpKind::kPermute,
        router,
        {Doubles({kTokens, hidden}, random_.Normals(kTokens * hidden)), slots},
        {Empty({choices, hidden})}};
    std::vector<double> dy = random_.Normals(choices * hidden);
    const TestResult dx = Run({OpKind::kPermuteGrad,
                               router,
                               {Doubles({choices, hidden}, dy), slots},
                               {Empty({kTokens, hidden})}});
    EXPECT_LE(RelativeError(dx.outputs[0], OfInput(permute, 0, dy)), kTolerance);
    const TestOp combine{OpKind::kCombine,
                         router,
                         {Doubles({choices, hidden}, random_.Normals(choices * hidden)), slots,
                          Doubles({kTokens, router.top_k}, random_.Normals(choices))},
                         {Empty({kTokens, hidden})}};
    dy = random_.Normals(kTokens * hidden);
    const TestResult gradient = Run({OpKind::kCombineGrad,
                                     router,
                                     {Doubles({kTokens, hidden}, dy), combine.inputs[0], slots,
                                      combine.inputs[2]},
                                     {Empty({choices, hidden}), Empty({kTokens, router.top_k})}});
    EXPECT_LE(RelativeError(gradient.outputs[0], OfInput(combine, 0, dy)), kTolerance);
    EXPECT_LE(RelativeError(gradient.outputs[1], OfInput(combine, 2, dy)), kTolerance);
  }
}

TEST_F(ReferenceGradient, OfGroupedMatmulWithExpertsWithoutRows) {
  // Two senders and three experts: one expert has no rows, one has rows of one sender only; the
  // last row of the buffer is unused.
  const model::GroupedAttributes grouped{6, 3, 7, false};
  const TestValue counts{DType::kInt32, {6}, {2, 0, 3, 1, 0, 0}};
  const int64_t rows = 7, k = 4, n = 3;
  const TestOp op{OpKind::kGroupedMatmul,
                  grouped,
                  {Doubles({rows, k}, random_.Normals(rows * k)),
                   Doubles({3 * n, k}, random_.Normals(3 * n * k)), counts},
                  {Empty({rows, n})}};
  const std::vector<double> dy = random_.Normals(rows * n);
  const TestValue dy_value = Doubles({rows, n}, dy);
  const TestResult dx = Run({OpKind::kGroupedMatmulGradInput,
                             grouped,
                             {dy_value, op.inputs[1], counts},
                             {Empty({rows, k})}});
  const TestResult dw = Run({OpKind::kGroupedMatmulGradWeight,
                             grouped,
                             {dy_value, op.inputs[0], counts},
                             {Empty({3 * n, k})}});
  EXPECT_LE(RelativeError(dx.outputs[0], OfInput(op, 0, dy)), kTolerance);
  EXPECT_LE(RelativeError(dw.outputs[0], OfInput(op, 1, dy)), kTolerance);
  for (int64_t i = n * k; i < 2 * n * k; ++i) EXPECT_EQ(dw.outputs[0][i], 0);
}

// The chosen experts and the slots of all tokens. The objective is smooth as long as they do not
// change.
std::vector<std::vector<double>> ChoicesOf(ProgramRun& run) {
  std::vector<std::vector<double>> choices;
  for (const model::Op& op : run.program().Ops(0, model::Piece::kForward)) {
    if (op.kind != OpKind::kRouterTopK) continue;
    choices.push_back(run.Read(op.outputs[1]));
    choices.push_back(run.Read(op.outputs[2]));
  }
  return choices;
}

// The objective with auxiliary losses, through routers, experts, shared experts and norms.
TEST_F(ReferenceGradient, OfAProgramWithExpertsIsThatOfItsObjective) {
  for (const bool sigmoid : {false, true}) {
    for (const double capacity_factor : {0.0, 1.0}) {
      model::ModelConfig config = model::SmallMixture("AEAE");
      config.experts.score = sigmoid ? model::RouterScore::kSigmoid : model::RouterScore::kSoftmax;
      config.experts.capacity_factor = capacity_factor;
      const uint64_t seed = static_cast<uint64_t>(random_.Integer(1, 1 << 30));
      ProgramRun run(backend_, model::StageOptions(config, {}, 2, 7), seed);
      // Returns the sum of loss and auxiliary losses, and the number of dropped choices.
      const auto train = [&](const Microbatch& microbatch) {
        double sum = run.Train(microbatch, true)[0], dropped = 0;
        for (const model::ValueId totals : run.program().router_totals) {
          const std::vector<double> lanes = run.Read(totals);
          EXPECT_GT(lanes[0], 0);
          EXPECT_GT(lanes[1], 0);
          sum += lanes[0] + lanes[1];
          dropped += lanes[2];
        }
        return std::pair(sum, dropped);
      };
      // With a capacity, uses a microbatch in which a choice is dropped; most are of this kind, and
      // a balanced one would test less.
      Microbatch microbatch = run.MakeMicrobatch(seed);
      for (uint64_t draw = 1; capacity_factor > 0 && train(microbatch).second == 0; ++draw) {
        ASSERT_LT(draw, 100) << "no choice is ever dropped";
        microbatch = run.MakeMicrobatch(seed + draw);
      }
      EXPECT_EQ(train(microbatch).second > 0, capacity_factor > 0);
      const auto choices = ChoicesOf(run);
      std::map<model::ValueId, std::vector<double>> gradients;
      for (const model::ParameterEntry& entry : run.program().parameters) {
        gradients[entry.value] = run.Read(entry.gradient);
      }
      int compared = 0, moved = 0;
      for (const model::ParameterEntry& entry : run.program().parameters) {
        auto* parameter = static_cast<double*>(run.executable().Address(entry.value, 0));
        const int64_t count = run.program().value(entry.value).elements();
        for (int trial = 0; trial < 3; ++trial) {
          const int64_t i = random_.Integer(0, count - 1);
          const double before = parameter[i], expected = gradients[entry.value][i];
          bool stay = true;
          const auto objective = [&](double at) {
            parameter[i] = at;
            const double sum = train(microbatch).first;
            stay &= ChoicesOf(run) == choices;
            return sum;
          };
          const double above = objective(before + 1e-6), below = objective(before - 1e-6);
          parameter[i] = before;
          // There is no derivative where a token changes its expert or a choice reaches the
          // capacity.
          ++(stay ? compared : moved);
          if (!stay) continue;
          EXPECT_NEAR((above - below) / 2e-6, expected, 1e-5 * (1 + std::abs(expected)))
              << run.program().value(entry.value).name << " element " << i;
        }
      }
      EXPECT_LT(10 * moved, compared);
    }
  }
}

// Perturbs a few random elements of every parameter of a small model, with and without tied
// embeddings, directly in the executable's float64 memory.
TEST_F(ReferenceGradient, OfAWholeProgramIsThatOfItsLoss) {
  for (const bool tied : {false, true}) {
    model::ModelConfig config = model::SmallModel("ADAD");
    config.tie_word_embeddings = tied;
    const uint64_t seed = static_cast<uint64_t>(random_.Integer(1, 1 << 30));
    ProgramRun run(backend_, model::StageOptions(config, {}, 2, 7), seed);
    const Microbatch microbatch = run.MakeMicrobatch(seed);
    run.Train(microbatch, true);
    for (const model::ParameterEntry& entry : run.program().parameters) {
      auto* parameter = static_cast<double*>(run.executable().Address(entry.value, 0));
      const auto* gradient =
          static_cast<const double*>(run.executable().Address(entry.gradient, 0));
      const int64_t count = run.program().value(entry.value).elements();
      for (int trial = 0; trial < 4; ++trial) {
        const int64_t i = random_.Integer(0, count - 1);
        const double before = parameter[i], expected = gradient[i];
        parameter[i] = before + 1e-4;
        const double above = run.Evaluate(microbatch)[0];
        parameter[i] = before - 1e-4;
        const double below = run.Evaluate(microbatch)[0];
        parameter[i] = before;
        EXPECT_NEAR((above - below) / 2e-4, expected, 1e-5 * (1 + std::abs(expected)))
            << run.program().value(entry.value).name << " element " << i;
      }
    }
  }
}

}  // namespace
}  // namespace troupe::kernels
