// Tests the fall-backs that the CUDA backend reports for matmuls that a library does not support.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <vector>

#include "kernels/backend/op_sequence.h"
#include "kernels/cuda/emulated/emulated_device.h"
#include "kernels/cuda/kernels/kernels.h"
#include "kernels/cuda/libraries/matmul_layout.h"
#include "kernels/cuda/runtime/cuda_backend.h"
#include "kernels/numerics/bfloat16.h"
#include "kernels/numerics/float8.h"
#include "kernels/reference/reference_backend.h"
#include "kernels/testing/program_run.h"
#include "kernels/testing/testing.h"
#include "model/testing.h"

namespace troupe::kernels {
namespace {

using cuda::LibraryMatmul;
using cuda::Stream;
using cuda::emulator::EmulatedDevice;

// Runs matmuls on our own kernel, and counts them.
class CountedMatmul : public LibraryMatmul {
 public:
  CountedMatmul(EmulatedDevice& device, const MatmulShape& shape, int* runs)
      : device_(device), shape_(shape), runs_(*runs) {}
  int64_t workspace_bytes() const override { return 1000; }
  std::string implementation() const override { return "counted"; }
  Status Enqueue(const void* a, const void* b, void* c, bool accumulate, void* workspace,
                 Stream stream, const cuda::OperandScales&) override {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(workspace) % 256, 0u);
    ++runs_;
    return device_.Launch(cuda::Matmul({shape_.kind, a, b, c, shape_.rows, shape_.k, shape_.n,
                                        nullptr, 1, 1, accumulate},
                                       shape_.bfloat16),
                          stream);
  }

 private:
  EmulatedDevice& device_;
  const MatmulShape shape_;
  int& runs_;
};

class OneKindLibrary : public cuda::MatmulLibrary {
 public:
  OneKindLibrary(EmulatedDevice& device, MatmulKind missing) : device_(device), missing_(missing) {}
  StatusOr<std::unique_ptr<LibraryMatmul>> Prepare(const MatmulShape& shape) override {
    if (shape.kind == missing_) return nullptr;
    return std::make_unique<CountedMatmul>(device_, shape, &runs);
  }

  int runs = 0;

 private:
  EmulatedDevice& device_;
  const MatmulKind missing_;
};

// Computes FP8 matmuls on the host by their definition, from the FP8 values and scales that a
// library gets.
class Float8Matmul : public LibraryMatmul {
 public:
  Float8Matmul(EmulatedDevice& device, const MatmulShape& shape, int* runs)
      : device_(device), shape_(shape), layout_(cuda::LayoutOf(shape)), runs_(*runs) {}
  int64_t workspace_bytes() const override { return 0; }
  std::string implementation() const override { return "by definition"; }
  Status Enqueue(const void* a, const void* b, void* c, bool accumulate, void*, Stream stream,
                 const cuda::OperandScales& scales) override {
    ++runs_;
    // The library's first matrix is our second.
    const auto multiply = [=, this, first = static_cast<const uint8_t*>(b),
                           second = static_cast<const uint8_t*>(a)] {
      const auto format =
          shape_.kind == MatmulKind::kForward ? Float8Format::kE4M3 : Float8Format::kE5M2;
      for (int64_t i = 0; i < layout_.m; ++i) {
        for (int64_t j = 0; j < layout_.n; ++j) {
          double sum = 0;
          for (int64_t l = 0; l < layout_.k; ++l) {
            const bool squares = shape_.kind != MatmulKind::kWeightGradient;
            sum += double{FromFloat8(Float8Format::kE4M3, first[l + i * layout_.a.leading])} *
                   FromFloat8(format, second[l + j * layout_.b.leading]) *
                   ScaleAt(scales.b, squares, layout_.m, i, l) *
                   ScaleAt(scales.a, false, layout_.n, j, l);
          }
          const auto scaled = static_cast<float>(sum);
          const int64_t at = i + j * layout_.d.leading;
          if (cuda::HasFloatResult(shape_)) {
            float& to = static_cast<float*>(c)[at];
            to = accumulate ? to + scaled : scaled;
          } else {
            static_cast<BFloat16*>(c)[at] = ToBFloat16(scaled);
          }
        }
      }
      return OkStatus();
    };
    return device_.Enqueue("float8 matmul", multiply, stream);
  }

 private:
  // The scale of element [line, at] of an operand with `lines` rows.
  float ScaleAt(const float* scales, bool squares, int64_t lines, int64_t line, int64_t at) const {
    if (shape_.float8 == Float8Scaling::kWhole) return *scales;
    const int64_t blocks = (layout_.k + 127) / 128;
    return squares ? scales[line / 128 * ((blocks + 3) / 4 * 4) + at / 128]
                   : scales[at / 128 * lines + line];
  }

  EmulatedDevice& device_;
  const MatmulShape shape_;
  const cuda::MatmulLayout layout_;
  int& runs_;
};

class Float8Library : public cuda::MatmulLibrary {
 public:
  explicit Float8Library(EmulatedDevice& device) : device_(device) {}
  StatusOr<std::unique_ptr<LibraryMatmul>> Prepare(const MatmulShape& shape) override {
    if (shape.float8 == Float8Scaling::kNone)
      return std::make_unique<CountedMatmul>(device_, shape, &others);
    if (shape.float8 == Float8Scaling::kBlocks && !takes_blocks) return nullptr;
    return std::make_unique<Float8Matmul>(device_, shape, &runs);
  }

  int runs = 0, others = 0;
  bool takes_blocks = false;

 private:
  EmulatedDevice& device_;
};

// Block scales must arrive in the library's layout, for numbers of blocks along the summed
// dimension that are and are not multiples of 4.
TEST(Fallbacks, ScalesOfBlocksComeInTheFormOfTheLibrary) {
  TestRandom random;
  ReferenceBackend reference;
  for (const int64_t depth : {128, 640}) {
    for (const model::OpKind kind : {model::OpKind::kMatmul, model::OpKind::kMatmulGradInput,
                                     model::OpKind::kMatmulGradWeight}) {
      const bool weight = kind == model::OpKind::kMatmulGradWeight;
      const int64_t rows = 16, columns = 256;
      const auto scales = [&](int64_t lines) {
        TestValue value{model::DType::kFloat32, {lines, depth / 128}, {}};
        for (int64_t i = 0; i < lines * depth / 128; ++i) {
          value.numbers.push_back(std::exp2(static_cast<double>(random.Integer(-6, 2))));
        }
        return value;
      };
      const model::DType first =
          kind == model::OpKind::kMatmul ? model::DType::kFloat8E4M3 : model::DType::kFloat8E5M2;
      const TestOp op{
          kind,
          {},
          {{first, {rows, depth}, random.Normals(rows * depth)},
           {model::DType::kFloat8E4M3, {columns, depth}, random.Normals(columns * depth)},
           scales(rows),
           scales(weight ? columns : columns / 128)},
          {{weight ? model::DType::kFloat32 : model::DType::kBFloat16, {rows, columns}, {}}}};
      EmulatedDevice device;
      Float8Library library(device);
      library.takes_blocks = true;
      CudaBackend backend(device, {.matmuls = &library}, nullptr);
      EXPECT_LE(RelativeError(RunOp(backend, op).outputs[0], RunOp(reference, op).outputs[0]),
                0x1.0p-8)
          << model::Name(kind) << " " << depth;
      EXPECT_GT(library.runs, 0);
    }
  }
}

TEST(Fallbacks, Float8MatmulsAreTheLibrarysOrComputedInBfloat16WhichIsReported) {
  for (const auto recipe : {model::Float8Recipe::kDelayed, model::Float8Recipe::kBlockwise}) {
    model::BuildOptions options = model::StageOptions(model::SmallModel("AD"), {}, 2, 8);
    options.compute_dtype = model::DType::kBFloat16;
    options.float8 = recipe;
    EmulatedDevice device, own_device;
    Float8Library library(device);
    CudaBackend backend(device, {.matmuls = &library}, nullptr), own(own_device, {}, nullptr);
    ProgramRun run(backend, options, 3), expected(own, options, 3);
    for (int step = 1; step <= 2; ++step) {
      const Microbatch microbatch = run.MakeMicrobatch(static_cast<uint64_t>(step));
      EXPECT_LE(RelativeError(run.Train(microbatch, true), expected.Train(microbatch, true)), 1e-3);
      EXPECT_LE(RelativeError(run.Update(1e-3), expected.Update(1e-3)), 2e-2);
    }
    EXPECT_GT(library.others, 0);
    EXPECT_TRUE(own.fallbacks().empty());  // without a library nothing falls back
    if (recipe == model::Float8Recipe::kDelayed) {
      EXPECT_GT(library.runs, 0);
      EXPECT_TRUE(backend.fallbacks().empty());
    } else {
      EXPECT_EQ(library.runs, 0);
      EXPECT_EQ(backend.fallbacks().size(), 12u);  // three matmuls in each of four layers
      EXPECT_THAT(backend.fallbacks(), testing::Each(testing::EndsWith(kFloat8Fallback)));
    }
  }
}

TEST(Fallbacks, AreTheMatmulsThatTheLibraryDoesNotComputeOnceEach) {
  EmulatedDevice device;
  OneKindLibrary library(device, MatmulKind::kInputGradient);
  CudaBackend backend(device, {.matmuls = &library}, nullptr);
  ProgramRun run(backend, model::StageOptions(model::SmallModel("AD"), {}, 2, 8), 3);
  const Microbatch microbatch = run.MakeMicrobatch(1);
  run.Train(microbatch, true);
  EXPECT_GT(library.runs, 0);
  int missing = 0;
  for (const model::Op& op : run.program().Ops(0, model::Piece::kBackward)) {
    if (op.kind == model::OpKind::kMatmulGradInput) ++missing;
  }
  ASSERT_GT(missing, 1);
  EXPECT_EQ(backend.fallbacks().size(), static_cast<size_t>(missing));
  EXPECT_THAT(backend.fallbacks(),
              testing::Each(testing::AllOf(testing::StartsWith("matmul_grad_input "),
                                           testing::EndsWith(": own kernel"))));
}

}  // namespace
}  // namespace troupe::kernels
