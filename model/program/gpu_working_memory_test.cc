#include "model/program/gpu_working_memory.h"

#include <gtest/gtest.h>

#include <utility>

#include "model/build.h"
#include "model/program/builder.h"
#include "model/testing.h"

namespace troupe::model {
namespace {

constexpr int64_t kMebibyte = 1 << 20;

int64_t OfLlama124m(int64_t samples, int64_t tokens, DType compute, bool document_mask = false) {
  ModelConfig config = Llama124m();
  config.blocks = "AD";
  BuildOptions options = StageOptions(config, {}, samples, tokens);
  options.compute_dtype = compute;
  options.document_mask = document_mask;
  return GpuWorkingBytes(BuildProgram(options).value());
}

TEST(GpuWorkingMemoryTest, IsThatOfAMatmulWhereNoLibraryComputesAttention) {
  EXPECT_EQ(OfLlama124m(8, 1024, DType::kFloat32), 32 * kMebibyte);
  EXPECT_EQ(OfLlama124m(8, 1024, DType::kBFloat16, /*document_mask=*/true), 32 * kMebibyte);
}

// 12 heads of 1,024 tokens: 2·1,024² bytes of score gradients per head and 4 per token, 1 MiB per
// call, and 4 bytes of lse per row and head.
TEST(GpuWorkingMemoryTest, GrowsWithTheSamplesOfAnAttentionsGradientUpToItsLimit) {
  const int64_t of_head = 2 * 1024 * 1024 + 4 * 1024;
  EXPECT_EQ(OfLlama124m(8, 1024, DType::kBFloat16),
            kMebibyte + 8 * 12 * of_head + 8 * 1024 * 12 * 4);
  EXPECT_EQ(OfLlama124m(64, 1024, DType::kBFloat16), 1024 * kMebibyte + 64 * 1024 * 12 * 4);
}

TEST(GpuWorkingMemoryTest, HasNoneOfAnAttentionOfWhichOneHeadAloneNeedsMoreThanTheLimit) {
  EXPECT_EQ(AttentionGradHeadBytes(
                {.query_heads = 12, .key_value_heads = 12, .head_dim = 64, .tokens = 32768}),
            2048 * kMebibyte + 4 * 32768);
  EXPECT_EQ(OfLlama124m(1, 32768, DType::kBFloat16), 32 * kMebibyte);
}

// Tokens are rounded up to 64 and 128; dk and dv exist for each of the four query heads that share
// a key head.
TEST(GpuWorkingMemoryTest, OfAGradientIsOfAllHeadsOfQueriesThatShareKeys) {
  EXPECT_EQ(AttentionGradHeadBytes(
                {.query_heads = 32, .key_value_heads = 8, .head_dim = 128, .tokens = 200}),
            4 * (2 * 256 * 256 + 4 * 200 + 4 * 200 * 128));
}

// The working memory of one collective on a tensor axis of `ranks`, for f32 values with these
// extents.
int64_t OfCollective(int ranks, OpKind kind, DType wire, std::pair<int64_t, int64_t> in,
                     std::pair<int64_t, int64_t> out) {
  Program program;
  program.mesh.degrees[Axis::kTensor] = ranks;
  const auto value = [&](const char* name, std::pair<int64_t, int64_t> extents) {
    return AppendValue(
        program, name, Role::kActivation, 0,
        {DType::kFloat32,
         {{"rows", extents.first, extents.first}, {"columns", extents.second, extents.second}},
         {},
         {}});
  };
  const CollectiveAttributes over = {GroupOf(Axis::kTensor), CollectivePurpose::kTensor};
  Attributes attributes = ExchangeHeadsAttributes{over};
  if (kind == OpKind::kAllReduce) attributes = AllReduceAttributes{over, ReduceKind::kSum, wire};
  if (kind == OpKind::kReduceScatter) {
    attributes = ReduceScatterAttributes{over, RowCut(), 1, wire};
  }
  const ValueId x = value("x", in), y = value("y", out);
  program.update = {{.kind = kind, .attributes = attributes, .inputs = {x}, .outputs = {y}}};
  return GpuWorkingBytes(program);
}

// The buffers of sent and received rows.
TEST(GpuWorkingMemoryTest, HasThePackedRowsOfAnExchange) {
  EXPECT_EQ(OfCollective(2, OpKind::kExchangeHeads, DType::kFloat32, {4, 6}, {8, 3}),
            4 * 6 * 4 + 8 * 3 * 4);
  EXPECT_EQ(OfCollective(1, OpKind::kExchangeHeads, DType::kFloat32, {4, 6}, {4, 6}), 0);
}

// The first of 3 ranks has 3 of 7 rows of 4: it packs the 16 elements of the others, and two ranks
// send it 12 each. For an all-reduce the 28 elements occupy 32 in their bucket, which is packed;
// this rank holds 3 blocks of 11 and 16 more, and 32 come back.
TEST(GpuWorkingMemoryTest, HasTheRoundedTermsOfASumThatTravelsAsBfloat16) {
  EXPECT_EQ(OfCollective(3, OpKind::kReduceScatter, DType::kBFloat16, {7, 4}, {3, 4}),
            2 * (16 + 2 * 12));
  EXPECT_EQ(OfCollective(3, OpKind::kAllReduce, DType::kBFloat16, {7, 4}, {7, 4}),
            2 * (32 + 3 * 27 + 32));
  EXPECT_EQ(OfCollective(3, OpKind::kAllReduce, DType::kFloat32, {7, 4}, {7, 4}), 0);
}

}  // namespace
}  // namespace troupe::model
