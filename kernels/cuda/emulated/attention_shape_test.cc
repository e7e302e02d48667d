#include "kernels/cuda/kernels/attention_shape.h"

#include <gtest/gtest.h>

#include <set>
#include <tuple>

namespace troupe::kernels::cuda {
namespace {

constexpr AttentionPass kPasses[] = {AttentionPass::kForward, AttentionPass::kQueryGradient,
                                     AttentionPass::kKeyGradient};

AttentionRows Rows(int64_t queries, int64_t keys, int64_t head_dim) {
  return {.samples = 3,
          .tokens = 10000,
          .query_heads = 6,
          .key_value_heads = 2,
          .head_dim = head_dim,
          .queries = {queries, queries, 0, queries},
          .keys = {keys, keys, 0, keys},
          .documents = nullptr};
}

TEST(AttentionShape, EveryBlockFitsAMultiprocessor) {
  for (const AttentionPass pass : kPasses) {
    for (const int64_t head_dim : {1, 64, 65, 128, 129, 256}) {
      for (const bool bfloat16 : {false, true}) {
        const LaunchShape shape = AttentionShape(pass, Rows(100, 200, head_dim), bfloat16);
        EXPECT_LE(shape.shared_bytes, 227u << 10) << head_dim;
        EXPECT_LE(shape.threads * 255, 64u << 10) << "registers, of " << head_dim;
        EXPECT_GE(PaddedHeadDim(head_dim), head_dim);
      }
    }
  }
}

TEST(AttentionShape, EveryRowOfEveryHeadHasOneBlock) {
  for (const AttentionPass pass : kPasses) {
    const bool of_keys = pass == AttentionPass::kKeyGradient;
    for (const int64_t head_dim : {64, 128, 256}) {
      for (const int64_t queries : {1, 127, 128, 129, 1000}) {
        const AttentionRows rows = Rows(queries, 2 * queries, head_dim);
        const int64_t heads = of_keys ? rows.key_value_heads : rows.query_heads;
        const int64_t all = of_keys ? rows.keys.rows : rows.queries.rows;
        const AttentionTile tile = TileOf(pass, PaddedHeadDim(head_dim), true);
        const LaunchShape shape = AttentionShape(pass, rows, true);
        EXPECT_EQ(shape.blocks_y * static_cast<unsigned>(tile.columns),
                  static_cast<unsigned>(head_dim));
        std::set<std::tuple<int, int, int>> covered;
        for (unsigned block = 0; block < shape.blocks_x; ++block) {
          const AttentionPlace place = PlaceOf(pass, rows, tile.rows(), block);
          EXPECT_LT(place.sample, rows.samples);
          EXPECT_LT(place.head, heads);
          for (int row = place.first; row < all && row < place.first + tile.rows(); ++row) {
            EXPECT_TRUE(covered.insert({place.sample, place.head, row}).second)
                << "twice: row " << row;
          }
        }
        EXPECT_EQ(covered.size(), static_cast<size_t>(rows.samples * heads * all));
      }
    }
  }
}

TEST(AttentionShape, TheRowsWithMostToDoComeFirst) {
  const AttentionRows rows = Rows(1000, 1000, 64);
  EXPECT_EQ(PlaceOf(AttentionPass::kForward, rows, 128, 0).first, 896);
  EXPECT_EQ(PlaceOf(AttentionPass::kKeyGradient, rows, 128, 0).first, 0);
}

}  // namespace
}  // namespace troupe::kernels::cuda
