#include "plan/device/tpu_memory.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

using model::AttentionAttributes;
using model::Op;
using model::OpKind;
using model::Piece;
using model::Program;

constexpr int64_t kSamples = 2, kHeads = 4;

AttentionAttributes Attention(int64_t tokens) {
  return {.query_heads = kHeads, .key_value_heads = 2, .head_dim = 8, .tokens = tokens, .mask = {}};
}

// A program whose forward pass has one operation, with an output of `rows` rows.
Program WithOne(OpKind kind, const model::Attributes& attributes, int64_t rows) {
  Program program;
  model::Value output;
  output.dims = {{"rows", rows, rows}};
  program.values = {output};
  program.ops.resize(1);
  program.ops[0].resize(model::kNumPieces);
  Op op;
  op.kind = kind;
  op.attributes = attributes;
  op.outputs = {0};
  program.ops[0][static_cast<size_t>(Piece::kForward)] = {op};
  return program;
}

Program WholeSamples(OpKind kind, int64_t tokens) {
  return WithOne(kind, Attention(tokens), kSamples * tokens);
}

int64_t CodeBytes(const Program& program) {
  return TpuReserveBytes(v1::Plan(), program) - kTpuOperationCodeBytes;
}

TEST(TpuMemory, OfAttentionHasTheCodeOfEachChunkOrOfALoop) {
  const auto forward = [](int64_t tokens) {
    return CodeBytes(WholeSamples(OpKind::kAttention, tokens)) / kTpuAttentionChunkCodeBytes;
  };
  const auto gradient = [](int64_t tokens) {
    return CodeBytes(WholeSamples(OpKind::kAttentionGrad, tokens)) / kTpuGradientChunkCodeBytes;
  };
  EXPECT_EQ(forward(256), 2);
  EXPECT_EQ(forward(896), 7);
  EXPECT_EQ(gradient(896), 7);
  for (const int64_t tokens : {1024, 2048, 8192}) {
    EXPECT_EQ(forward(tokens), kTpuLoopChunks);
    EXPECT_EQ(gradient(tokens), kTpuLoopChunks);
  }
  EXPECT_EQ(forward(1025), 9);  // the last chunk has another size
}

TEST(TpuMemory, OfAttentionHasTheScoresOfAChunkAndOfTheKeysThatItReadsAtOnce) {
  const auto working = [](OpKind kind, int64_t tokens) {
    return TpuWorkingBytes(WholeSamples(kind, tokens));
  };
  EXPECT_EQ(working(OpKind::kAttention, 896), 2 * kSamples * kHeads * 128 * 896 * 4);
  EXPECT_EQ(working(OpKind::kAttentionGrad, 896), 4 * kSamples * kHeads * 128 * 896 * 4);
  EXPECT_EQ(working(OpKind::kAttention, 1024), 2 * kSamples * kHeads * 128 * 128 * 4);
  EXPECT_EQ(working(OpKind::kAttentionGrad, 4096), 4 * kSamples * kHeads * 256 * 256 * 4);
}

TEST(TpuMemory, OfAGatedUnitHasItsInputInFloat32AndItsGradient) {
  Program program = WithOne(OpKind::kSwiGluGrad, model::NoAttributes(), 1000);
  program.values[0].dtype = model::DType::kBFloat16;
  EXPECT_EQ(TpuWorkingBytes(program), 2 * 1000 * 2);
  program.values[0].dtype = model::DType::kFloat32;
  EXPECT_EQ(TpuWorkingBytes(program), 0);
}

// The program of a stage has the parts of all ranks of the ring. Of 1,024 tokens, each of two ranks
// has a head and a tail of two chunks.
TEST(TpuMemory, OfARingHasTheChunksOfEveryRankThatSeeKeys) {
  const auto chunks = [](int32_t shift) {
    Program program = WithOne(OpKind::kAttentionPart,
                              model::PartAttributes{.attention = Attention(1024), .shift = shift},
                              kSamples * 512);
    program.mesh.degrees[model::Axis::kContext] = 2;
    return CodeBytes(program) / kTpuAttentionChunkCodeBytes;
  };
  EXPECT_EQ(chunks(0), 4 + 4);
  EXPECT_EQ(chunks(1), 2 + 4);  // the head of the first rank sees no keys of the second
}

}  // namespace
}  // namespace troupe
