#include "worker/rank/rank_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "worker/rank/core_wait.h"

namespace troupe {
namespace {

using testing::ElementsAre;

TEST(RankEnvironmentTest, TheWorkOfACompilerIsReported) {
  const v1::Compilation proto = CompilationToProto({.plugin = "p.so: cpu, PJRT 0.81",
                                                    .options = {"a=1", "b=2"},
                                                    .compiled = 3,
                                                    .cache_hits = 4,
                                                    .seconds = 1.5,
                                                    .programs = {"forward"},
                                                    .cache_faults = {{"an entry is damaged", 2}}});
  EXPECT_EQ(proto.plugin(), "p.so: cpu, PJRT 0.81");
  EXPECT_THAT(proto.options(), ElementsAre("a=1", "b=2"));
  EXPECT_EQ(proto.compiled(), 3);
  EXPECT_EQ(proto.cache_hits(), 4);
  EXPECT_EQ(proto.seconds(), 1.5);
  ASSERT_EQ(proto.cache_faults_size(), 1);
  EXPECT_EQ(proto.cache_faults(0).operation(), "an entry is damaged");
  EXPECT_EQ(proto.cache_faults(0).count(), 2);
}

TEST(RankEnvironmentTest, SettingsThatChangeHowARankComputesAreItsFlagsAndNoOthers) {
  const char* const environment[] = {"HOME=/root",
                                     "UCX_TLS=tcp",
                                     "PATH=/bin",
                                     "TROUPE_KERNEL_LEVEL=avx2",
                                     "OMP_WAIT_POLICY=active",
                                     "TROUPE_COORDINATOR=127.0.0.1:1",
                                     "CUDNN_FRONTEND_ATTN_DP_WORKSPACE_LIMIT=0",
                                     "NCCL_ALGO=Ring",
                                     "XLA_FLAGS=--xla_dump_to=/tmp",
                                     "LIBTPU_INIT_ARGS=--a",
                                     nullptr};
  EXPECT_THAT(ComputeFlags(environment),
              ElementsAre("CUDNN_FRONTEND_ATTN_DP_WORKSPACE_LIMIT=0", "LIBTPU_INIT_ARGS=--a",
                          "NCCL_ALGO=Ring", "OMP_WAIT_POLICY=active", "TROUPE_KERNEL_LEVEL=avx2",
                          "UCX_TLS=tcp", "XLA_FLAGS=--xla_dump_to=/tmp"));
  EXPECT_TRUE(ComputeFlags(nullptr).empty());
}

using kernels::ExecutedMatmul;
using model::DType;
using model::OpKind;

// A program with one matmul that has operands of `dtype` with per-tensor scales.
model::Program ProgramOf(DType dtype) {
  model::Program program;
  program.ops.resize(1);
  program.ops[0].resize(model::kNumPieces);
  model::Value value;
  value.dtype = dtype;
  value.dims = {{"scales", 1, 1}};
  program.values.push_back(value);
  model::Op op;
  op.kind = OpKind::kMatmul;
  op.inputs.assign(4, 0);
  program.ops[0][0].push_back(op);
  return program;
}

ExecutedMatmul Matmuls(int64_t count, DType dtype) {
  return {OpKind::kMatmul, dtype, dtype, dtype, dtype, count};
}

TEST(RankEnvironmentTest, ThePrecisionIsThatOfTheMatmulsThatTheBackendMakes) {
  const model::Program program = ProgramOf(DType::kBFloat16);
  EXPECT_EQ(MatmulPrecision(program, {Matmuls(2, DType::kFloat32)}), "float32");
  EXPECT_EQ(MatmulPrecision(program, {Matmuls(2, DType::kBFloat16)}),
            "bfloat16 matmuls, float32 accumulators");
  EXPECT_EQ(MatmulPrecision(program, {Matmuls(1, DType::kBFloat16), Matmuls(1, DType::kFloat32)}),
            "bfloat16 matmuls, float32 accumulators (1 of 2 matmuls; the others float32)");
  // Operands in bfloat16 that are widened on a processor without bfloat16 support.
  ExecutedMatmul widened = Matmuls(2, DType::kBFloat16);
  widened.used_a = widened.used_b = DType::kFloat32;
  EXPECT_EQ(MatmulPrecision(program, {widened}), "float32");
  EXPECT_EQ(
      MatmulPrecision(program, {Matmuls(1, DType::kBFloat16), widened}),
      "bfloat16 matmuls, float32 accumulators (1 of 3 matmuls; the others float32; 2 of bfloat16 "
      "multiplied as float32)");
  model::Program packed = program;
  model::AllReduceAttributes attributes = {{{}, model::CollectivePurpose::kGradient}};
  attributes.wire = DType::kBFloat16;
  model::Op reduce;
  reduce.kind = OpKind::kAllReduce;
  reduce.attributes = attributes;
  packed.ops[0][0].push_back(reduce);
  EXPECT_EQ(MatmulPrecision(packed, {Matmuls(1, DType::kFloat32)}),
            "float32, gradients sent as bfloat16");
}

TEST(RankEnvironmentTest, Float8IsReportedByOperationAndWhatItWasMultipliedAs) {
  const model::Program program = ProgramOf(DType::kFloat8E4M3);
  const ExecutedMatmul plain = Matmuls(1, DType::kBFloat16);
  const ExecutedMatmul forward = Matmuls(2, DType::kFloat8E4M3);
  ExecutedMatmul gradient = {OpKind::kMatmulGradInput, DType::kFloat8E5M2, DType::kFloat8E4M3,
                             DType::kFloat8E5M2,       DType::kFloat8E4M3, 1};
  EXPECT_EQ(
      MatmulPrecision(program, {plain, forward, gradient}),
      "float8 matmuls of linear layers, current scaling, float32 accumulators (2 matmul e4m3 x "
      "e4m3, 1 matmul_grad_input e5m2 x e4m3); "
      "else bfloat16 matmuls, float32 accumulators");
  // A stage between the first and the last has no other matmuls.
  EXPECT_EQ(MatmulPrecision(program, {forward}),
            "float8 matmuls of linear layers, current scaling, float32 accumulators (2 matmul e4m3 "
            "x e4m3)");
  gradient.used_a = gradient.used_b = DType::kBFloat16;
  EXPECT_EQ(
      MatmulPrecision(program, {plain, forward, gradient}),
      "float8 matmuls of linear layers, current scaling, float32 accumulators (2 matmul e4m3 x "
      "e4m3, 1 matmul_grad_input e5m2 x e4m3; "
      "1 of them multiplied as bfloat16); else bfloat16 matmuls, float32 accumulators");
}

TEST(RankEnvironmentTest, FallbacksAreCountedByOperation) {
  const auto counts =
      CountFallbacks({"matmul a: ref:any", "attention b: ref", "matmul c: ref:any"});
  ASSERT_EQ(counts.size(), 2u);
  EXPECT_EQ(counts[0].operation(), "attention");
  EXPECT_EQ(counts[0].count(), 1);
  EXPECT_EQ(counts[1].operation(), "matmul");
  EXPECT_EQ(counts[1].count(), 2);
}

TEST(RankEnvironmentTest, CoresThatAreNotSharedOutAreAFallback) {
  const auto counts = CountFallbacks({CoreFallback("open /dev/shm/troupe-cores: denied")});
  ASSERT_EQ(counts.size(), 1u);
  EXPECT_EQ(counts[0].operation(), "cores");
}

TEST(CoreWaitTest, TheSecondNumberOfSchedstatIsTheWait) {
  EXPECT_EQ(WaitOfSchedstat("100090 2948479 2\n"), 2948479);
  EXPECT_EQ(WaitOfSchedstat("100090"), std::nullopt);
  EXPECT_EQ(WaitOfSchedstat("1 x 2"), std::nullopt);
  EXPECT_EQ(WaitOfSchedstat("1 23"), std::nullopt);
}

TEST(CoreWaitTest, WhatWasTakenIsNotTakenAgain) {
  CoreWait wait;
  EXPECT_GE(wait.SecondsSinceLastCall(), 0);
  EXPECT_LT(wait.SecondsSinceLastCall(), 5);
}

}  // namespace
}  // namespace troupe
