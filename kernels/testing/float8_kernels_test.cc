// Tests of FP8 quantisation, amax histories and FP8 matmuls. FP8 values, scales and amax must equal
// the reference bit by bit: scales are powers of two, so quantising has a single rounding.
#include "kernels/testing/float8_kernel_test.h"
#include "kernels/testing/program_run.h"
#include "model/program/control_word.h"
#include "model/testing.h"

namespace troupe::kernels {
namespace {

using model::DType;
using model::OpKind;
using model::QuantizeAttributes;

const std::vector<std::pair<int64_t, int64_t>> kFloat8Shapes = {
    {1, 1}, {3, 16}, {65, 129}, {200, 288}, {144, 272}};

// Rows, and columns of gate and of up: ragged, multiples of 16 bytes, and whole blocks.
const std::vector<std::pair<int64_t, int64_t>> kSwiGluShapes = {
    {1, 1}, {65, 129}, {130, 96}, {144, 256}};

TEST_P(Float8KernelTest, QuantizedValuesAreTheReferencesBits) {
  for (const auto& [rows, columns] : kFloat8Shapes) {
    for (const DType format : {DType::kFloat8E4M3, DType::kFloat8E5M2}) {
      for (const int block_rows : {0, 1, 128}) {
        for (const int forms : {1, 2, 3}) {
          ExpectSame(QuantizeOp({format, (forms & 1) != 0, (forms & 2) != 0, block_rows},
                                Wide(rows, columns)));
        }
      }
    }
  }
}

TEST_P(Float8KernelTest, DelayedScalingGoesByItsHistoryAndFoldsWhatItSees) {
  const std::vector<double> none(model::kAmaxSteps, 0.0);
  std::vector<double> some = none;
  some[3] = 0.75;
  some[15] = 3.0;  // other values are more than twice as large and saturate
  for (const auto& [rows, columns] : kFloat8Shapes) {
    for (const std::vector<double>& history : {none, some}) {
      for (const bool folds : {false, true}) {
        for (const bool first_writer : {false, true}) {
          TestOp op =
              QuantizeOp({DType::kFloat8E5M2, true, true, 0, folds}, Wide(rows, columns), history);
          op.first_writer = first_writer;
          ExpectSame(op, {.first_microbatch = true});
        }
      }
    }
  }
}

TEST_P(Float8KernelTest, WhatIsNoNumberStaysNoneAndZerosAreScaledByOne) {
  for (const double bad : std::initializer_list<double>{NAN, INFINITY, -INFINITY, 0.0}) {
    for (const int block_rows : {0, 1, 128}) {
      TestValue x = Wide(140, 150);
      if (bad == 0) std::fill(x.numbers.begin(), x.numbers.end(), 0.0);
      x.numbers[141] = bad;
      for (const bool delayed : {false, true}) {
        if (delayed && block_rows > 0) continue;
        std::vector<double> history(delayed ? model::kAmaxSteps : 0, 1.5);
        const TestOp op =
            QuantizeOp({DType::kFloat8E4M3, true, true, block_rows, delayed}, x, history);
        ExpectSame(op);
        const TestResult result = RunOp(*backend_, op, {});
        EXPECT_EQ(std::isnan(result.outputs[0][141]), bad != 0);
      }
    }
  }
}

// FP8 values, scales and amax must equal those of two operations: one writes bfloat16 and one
// quantises it.
TEST_P(Float8KernelTest, WhatSwiGluMakesIsQuantizedAsIfItHadBeenWritten) {
  for (const auto& [rows, ffn] : kSwiGluShapes) {
    const TestValue gu = Wide(rows, 2 * ffn), dy = Wide(rows, ffn);
    for (const int block_rows : {0, 1}) {
      for (const int forms : {1, 2, 3}) {
        ExpectAsWritten({DType::kFloat8E4M3, (forms & 1) != 0, (forms & 2) != 0, block_rows}, {gu});
        ExpectAsWritten({DType::kFloat8E5M2, (forms & 1) != 0, (forms & 2) != 0, block_rows},
                        {dy, gu});
      }
    }
  }
}

TEST_P(Float8KernelTest, WhatSwiGluMakesIsScaledByItsHistoryAndFoldedAsIfItHadBeenWritten) {
  const std::vector<double> none(model::kAmaxSteps, 0.0);
  std::vector<double> some = none;
  some[7] = 0.25;
  for (const auto& [rows, ffn] : kSwiGluShapes) {
    const TestValue gu = Compute({rows, 2 * ffn}), dy = Wide(rows, ffn);
    for (const std::vector<double>& history : {none, some}) {
      for (const bool first_writer : {false, true}) {
        ExpectAsWritten({DType::kFloat8E4M3, true, true, 0, true}, {gu}, history, first_writer);
        ExpectAsWritten({DType::kFloat8E5M2, true, true, 0, true}, {dy, gu}, history, first_writer);
      }
      // As in recomputation.
      ExpectAsWritten({DType::kFloat8E4M3, true, true, 0, false}, {gu}, history);
      ExpectAsWritten({DType::kFloat8E5M2, true, true, 0, false}, {dy, gu}, history);
    }
  }
}

TEST_P(Float8KernelTest, WhatSwiGluMakesOfNoNumbersIsQuantizedAsIfItHadBeenWritten) {
  for (const double bad : std::initializer_list<double>{NAN, INFINITY, -INFINITY, 1e38}) {
    for (const int64_t ffn : {130, 256}) {
      // The bad number is in a gate, in an up, or in a gradient.
      for (const int64_t at : {int64_t{121}, ffn + 121, int64_t{-1}}) {
        TestValue gu = Compute({9, 2 * ffn}), dy = Wide(9, ffn);
        (at < 0 ? dy.numbers[5] : gu.numbers[static_cast<size_t>(at)]) = bad;
        for (const int block_rows : {0, 1}) {
          const bool folds = block_rows == 0;
          if (at >= 0) ExpectAsWritten({DType::kFloat8E4M3, true, true, block_rows, folds}, {gu});
          ExpectAsWritten({DType::kFloat8E5M2, true, true, block_rows, folds}, {dy, gu});
        }
      }
    }
  }
}

// If silu(gate) is gate and all results are exact, all backends compute the same numbers.
TEST_P(Float8KernelTest, WhatSwiGluMakesExactlyIsQuantizedToTheReferencesBits) {
  for (const auto& [rows, ffn] : kSwiGluShapes) {
    TestValue gu = Ints(rows * 2 * ffn, -3, 4), dy = Ints(rows * ffn, -3, 4);
    gu.dtype = dy.dtype = compute();
    gu.extents = {rows, 2 * ffn};
    dy.extents = {rows, ffn};
    for (int64_t i = 0; i < rows * 2 * ffn; ++i) {
      if (i % (2 * ffn) < ffn) gu.numbers[static_cast<size_t>(i)] += 40;
    }
    for (const int block_rows : {0, 1}) {
      const bool folds = block_rows == 0;
      ExpectSame(SourceOp({DType::kFloat8E4M3, true, true, block_rows, folds}, {gu}));
      ExpectSame(SourceOp({DType::kFloat8E5M2, true, true, block_rows, folds}, {dy, gu}));
    }
  }
}

TEST_P(Float8KernelTest, Float8MatmulsMatch) {
  struct Shape {
    int64_t rows, k, n;
  };
  for (const auto& [rows, k, n] :
       std::vector<Shape>{{1, 1, 1}, {3, 5, 7}, {33, 17, 65}, {64, 144, 272}, {130, 256, 48}}) {
    for (const bool blocks : {false, true}) {
      const int line = blocks ? 1 : 0, square = blocks ? 128 : 0;
      const auto matmul = [&](OpKind kind, DType first, int64_t m, int64_t other, int64_t depth,
                              int other_rows) {
        const auto [a, a_scale] = Operand(first, m, depth, line);
        const auto [b, b_scale] = Operand(DType::kFloat8E4M3, other, depth, other_rows);
        const bool weight = kind == OpKind::kMatmulGradWeight;
        return TestOp{kind,
                      {},
                      {a, b, a_scale, b_scale},
                      {weight ? Floats({m, other}) : Empty(compute(), {m, other})},
                      weight};
      };
      ExpectSums(matmul(OpKind::kMatmul, DType::kFloat8E4M3, rows, n, k, square));
      ExpectSums(matmul(OpKind::kMatmulGradInput, DType::kFloat8E5M2, rows, k, n, square));
      const TestOp gradient =
          matmul(OpKind::kMatmulGradWeight, DType::kFloat8E5M2, n, k, rows, line);
      ExpectSums(gradient);
      ExpectSums(gradient, {.first_microbatch = true});
    }
  }
}

// An FP8 matmul must equal the bfloat16 matmul within the formats' rounding error.
TEST_P(Float8KernelTest, AFloat8MatmulIsTheMatmulWithinTheFormatsRounding) {
  constexpr int64_t kRows = 70, kIn = 200, kOut = 90;
  for (const int blocks : {0, 1}) {
    const TestValue x = Compute({kRows, kIn}), w = Compute({kOut, kIn});
    const QuantizeAttributes of_x{DType::kFloat8E4M3, true, false, blocks};
    const QuantizeAttributes of_w{DType::kFloat8E4M3, true, false, blocks * 128};
    const TestOp x_op = QuantizeOp(of_x, x), w_op = QuantizeOp(of_w, w);
    const TestResult x8 = RunOp(*backend_, x_op), w8 = RunOp(*backend_, w_op);
    const auto made = [](const TestOp& op, const TestResult& result, size_t i) {
      return TestValue{op.outputs[i].dtype, op.outputs[i].extents, result.outputs[i]};
    };
    const TestResult y8 = RunOp(
        *backend_, {OpKind::kMatmul,
                    {},
                    {made(x_op, x8, 0), made(w_op, w8, 0), made(x_op, x8, 1), made(w_op, w8, 1)},
                    {Empty(compute(), {kRows, kOut})}});
    const TestResult y =
        RunOp(*backend_, {OpKind::kMatmul, {}, {x, w}, {Empty(compute(), {kRows, kOut})}});
    double error = 0, size = 0;
    for (size_t i = 0; i < y.outputs[0].size(); ++i) {
      error += std::pow(y8.outputs[0][i] - y.outputs[0][i], 2);
      size += std::pow(y.outputs[0][i], 2);
    }
    // Each operand is rounded to four significant bits: its error is at most 2^-4, about a third of
    // that on average.
    EXPECT_LT(std::sqrt(error / size), 0.06);
    EXPECT_GT(std::sqrt(error / size), 0.005);
  }
}

// Quantisation has no derivative; the gradient used is that of the unquantised matmul. Gradients
// must therefore equal those of bfloat16 within the formats' rounding error.
TEST_P(Float8KernelTest, GradientsOfAProgramAreThoseOfBfloat16WithinTheFormatsRounding) {
  for (const auto recipe : {model::Float8Recipe::kCurrent, model::Float8Recipe::kDelayed,
                            model::Float8Recipe::kBlockwise}) {
    model::BuildOptions options = model::StageOptions(model::SmallModel("ADAD"), {}, 3, 11);
    options.compute_dtype = DType::kBFloat16;
    ProgramRun plain(*backend_, options, 5);
    options.float8 = recipe;
    ProgramRun run(*backend_, options, 5, /*split_backward=*/true);
    for (int m = 0; m < 2; ++m) {
      const Microbatch microbatch = run.MakeMicrobatch(static_cast<uint64_t>(m));
      const std::vector<double> loss = plain.Train(microbatch, m == 0);
      EXPECT_LE(RelativeError(run.Train(microbatch, m == 0), loss), 0.01);
    }
    for (size_t p = 0; p < run.program().parameters.size(); ++p) {
      const std::vector<double> actual = run.Read(run.program().parameters[p].gradient);
      const std::vector<double> expected = plain.Read(plain.program().parameters[p].gradient);
      double error = 0, size = 0;
      for (size_t i = 0; i < expected.size(); ++i) {
        error += std::pow(actual[i] - expected[i], 2);
        size += std::pow(expected[i], 2);
      }
      EXPECT_LT(std::sqrt(error / size), 0.2)
          << run.program().value(run.program().parameters[p].value).name;
    }
    EXPECT_EQ(run.Update(1e-2)[model::kLaneNonfinite], 0.0);
  }
}

TEST_P(Float8KernelTest, HistoriesMoveOnWithAStepThatCountsAlone) {
  for (const auto& [lane, of_rank] :
       {std::pair(model::kLaneNonfinite, 0), std::pair(model::kLaneNonfinite, 3),
        std::pair(model::kLaneHalted, 1)}) {
    const bool finite = of_rank == 0;
    std::vector<double> control(model::kControlLanes, 0.0);
    control[lane] = of_rank;
    TestOp op{OpKind::kAmaxHistory, {}, {{DType::kFloat64, {model::kControlLanes}, control}}, {}};
    for (const double amax : {0.5, 7.0, 0.0}) op.inputs.push_back({DType::kFloat32, {1}, {amax}});
    for (int i = 0; i < 3; ++i) op.inputs.push_back(Floats({model::kAmaxSteps}));
    ReferenceBackend reference;
    const TestResult actual = RunOp(*backend_, op), expected = RunOp(reference, op);
    EXPECT_EQ(actual.inputs, expected.inputs);
    EXPECT_EQ(actual.inputs[5][0] == 7.0, finite);
    EXPECT_EQ(actual.inputs[5][1], static_cast<float>(op.inputs[5].numbers[finite ? 0 : 1]));
  }
}

}  // namespace
}  // namespace troupe::kernels
