// Compares the reference's derivatives with finite differences of its forward operations, in
// float64 on fresh random inputs.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>

#include "kernels/reference/gradient_test.h"
#include "kernels/testing/program_run.h"
#include "model/program/control_word.h"
#include "model/testing.h"

namespace troupe::kernels {
namespace {

using model::DType;
using model::OpKind;

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
    const TestOp op{
        OpKind::kAttention, attributes, {qkv, documents}, {Empty({rows, q * d}), Empty({rows, q})}};
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

// Statistics of a vocabulary split over two tensor ranks.
class ShardedVocabulary : public ReferenceGradient {
 protected:
  static constexpr int64_t kRows = 4, kSlice = 5;

  struct Slice {
    std::vector<double> max, sums;
  };
  struct Whole {
    Slice slices[2];
    std::vector<double> global_max, sums;
  };

  Whole Combine(const std::vector<double>& first, const std::vector<double>& second) {
    Whole whole;
    const std::vector<double>* both[2] = {&first, &second};
    for (int s = 0; s < 2; ++s) {
      const TestResult stats = Run({OpKind::kSoftmaxStats,
                                    model::VocabAttributes{s * kSlice},
                                    {Doubles({kRows, kSlice}, *both[s]), targets_},
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
  }

  // With the z-loss's coefficient `z`.
  double Loss(const Whole& of, double z) {
    double sum = Run({OpKind::kCrossEntropy,
                      model::LossAttributes{z},
                      {Doubles({kRows}, of.global_max), Doubles({2, kRows}, of.sums), weights_},
                      {Empty({2})}})
                     .outputs[0][0];
    for (int r = 0; r < kRows; ++r) {
      const double lse = std::log(of.sums[r]) + of.global_max[r];
      sum += z * weights_.numbers[r] * lse * lse;
    }
    return sum;
  }

  const TestValue targets_{DType::kInt32, {kRows}, random_.Integers(kRows, 0, 2 * kSlice - 1)};
  const TestValue weights_ = Doubles({kRows}, {1.0, 0.0, 0.5, 2.0});
};

// The derivative of the loss through the whole chain.
TEST_F(ShardedVocabulary, LossHasItsGradient) {
  const std::vector<double> logits[2] = {random_.Normals(kRows * kSlice, 3),
                                         random_.Normals(kRows * kSlice, 3)};
  const Whole whole = Combine(logits[0], logits[1]);
  for (const double z : {0.0, 0.3}) {
    std::vector<TestValue> read = {Doubles({2, kRows}, whole.sums), weights_};
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
               {Doubles({kRows, kSlice}, logits[s]), targets_,
                Doubles({kRows}, whole.slices[s].max), Doubles({2, kRows}, rescaled.outputs[0])},
               {Empty({kRows, kSlice})}});
      const std::vector<double> differences =
          Differences(logits[s], [&](const std::vector<double>& moved) {
            return Loss(s == 0 ? Combine(moved, logits[1]) : Combine(logits[0], moved), z);
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
