#include "worker/rank/rank_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/op_sequence.h"
#include "worker/rank/core_wait.h"

namespace troupe {
namespace {

using testing::ElementsAre;

TEST(RankEnvironmentTest, SettingsThatChangeHowARankComputesAreItsFlagsAndNoOthers) {
  const char* const environment[] = {"HOME=/root", "UCX_TLS=tcp", "PATH=/bin",
                                     "TROUPE_KERNEL_LEVEL=avx2", "OMP_WAIT_POLICY=active",
                                     "TROUPE_COORDINATOR=127.0.0.1:1", "CUDNN_FRONTEND_ATTN_DP_WORKSPACE_LIMIT=0",
                                     "NCCL_ALGO=Ring", nullptr};
  EXPECT_THAT(ComputeFlags(environment),
              ElementsAre("CUDNN_FRONTEND_ATTN_DP_WORKSPACE_LIMIT=0", "NCCL_ALGO=Ring", "OMP_WAIT_POLICY=active",
                          "TROUPE_KERNEL_LEVEL=avx2", "UCX_TLS=tcp"));
  EXPECT_TRUE(ComputeFlags(nullptr).empty());
}

model::Program ProgramOfProducts(const std::vector<model::DType>& dtypes) {
  model::Program program;
  program.ops.resize(1);
  program.ops[0].resize(model::kNumPieces);
  for (const model::DType dtype : dtypes) {
    model::Value value;
    value.dtype = dtype;
    value.dims = {{"scales", 1, 1}};
    program.values.push_back(value);
    model::Op op;
    op.kind = model::OpKind::kMatmul;
    op.inputs.assign(4, static_cast<model::ValueId>(program.values.size() - 1));
    program.ops[0][0].push_back(op);
  }
  return program;
}

TEST(RankEnvironmentTest, ThePrecisionIsThatOfTheProgramsProducts) {
  using model::DType;
  EXPECT_EQ(ProductPrecision(ProgramOfProducts({DType::kFloat32, DType::kFloat32}), {}), "float32");
  EXPECT_EQ(ProductPrecision(ProgramOfProducts({DType::kBFloat16}), {}),
            "bfloat16 products, float32 sums");
  EXPECT_EQ(ProductPrecision(ProgramOfProducts({DType::kBFloat16, DType::kFloat32}), {}),
            "bfloat16 products, float32 sums (1 of 2 products; the others float32)");
  model::Program packed = ProgramOfProducts({DType::kFloat32});
  model::CollectiveAttributes attributes = {{}, model::CollectivePurpose::kGradient};
  attributes.wire = DType::kBFloat16;
  model::Op reduce;
  reduce.kind = model::OpKind::kAllReduce;
  reduce.attributes = attributes;
  packed.ops[0][0].push_back(reduce);
  EXPECT_EQ(ProductPrecision(packed, {}), "float32, gradients sent as bfloat16");
}

TEST(RankEnvironmentTest, FactorsInEightBitsAreSaidByOperationAndWhichAreMultipliedAsBfloat16) {
  using model::DType;
  model::Program program =
      ProgramOfProducts({DType::kFloat8E4M3, DType::kBFloat16, DType::kFloat8E4M3, DType::kFloat8E4M3});
  model::Op& gradient = program.ops[0][0][3];
  gradient.kind = model::OpKind::kMatmulGradInput;
  program.values[3].dtype = DType::kFloat8E5M2;
  gradient.inputs[1] = 0;
  // As programs have them: in B, and once more in I.
  program.ops[0][static_cast<int>(model::Piece::kInputGradient)].push_back(gradient);
  EXPECT_EQ(ProductPrecision(program, {"matmul head: own kernel"}),
            "float8 products of linear layers, current scaling, float32 sums (2 matmul e4m3 x e4m3, 1 matmul_grad_input e5m2 x e4m3); "
            "else bfloat16 products, float32 sums");
  EXPECT_EQ(ProductPrecision(program, {std::string("matmul a: ") + kernels::kFloat8Fallback, "matmul b: ref"}),
            "float8 products of linear layers, current scaling, float32 sums (2 matmul e4m3 x e4m3, 1 matmul_grad_input e5m2 x e4m3; "
            "1 of them multiplied as bfloat16); else bfloat16 products, float32 sums");
}

TEST(RankEnvironmentTest, FallbacksAreCountedByOperation) {
  const auto counts = CountFallbacks({"matmul a: ref:any", "attention b: ref", "matmul c: ref:any"});
  ASSERT_EQ(counts.size(), 2u);
  EXPECT_EQ(counts[0].operation(), "attention");
  EXPECT_EQ(counts[0].count(), 1);
  EXPECT_EQ(counts[1].operation(), "matmul");
  EXPECT_EQ(counts[1].count(), 2);
}

TEST(CoreWaitTest, TheSecondNumberOfSchedstatIsTheWait) {
  EXPECT_EQ(WaitOfSchedstat("100090 2948479 2\n"), 2948479);
  EXPECT_EQ(WaitOfSchedstat("100090"), std::nullopt);
  EXPECT_EQ(WaitOfSchedstat("1 x 2"), std::nullopt);
  EXPECT_EQ(WaitOfSchedstat("1 23"), std::nullopt);
}

TEST(CoreWaitTest, WhatWasTakenIsNotTakenAgain) {
  CoreWait wait;
  EXPECT_GE(wait.TakeSeconds(), 0);
  EXPECT_LT(wait.TakeSeconds(), 5);
}

}  // namespace
}  // namespace troupe
