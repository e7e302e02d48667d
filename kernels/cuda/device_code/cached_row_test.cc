#include "kernels/cuda/device_code/cached_row.h"

#include <gtest/gtest.h>

namespace troupe::kernels::cuda {
namespace {

TEST(CachedRow, IsOfWholePacksAndNeverMoreThanABlockHas) {
  for (const int64_t bytes : {2, 4}) {
    for (const int64_t pack : {int64_t{1}, 16 / bytes}) {
      for (int64_t packs = 1; packs < 300'000; packs = packs * 5 / 4 + 1) {
        const int64_t kept = CachedOfRow(packs * pack, pack, bytes);
        EXPECT_EQ(kept % pack, 0);
        EXPECT_LE(kept * bytes, kMostBytesOfRow);
        EXPECT_TRUE(kept == packs * pack || kept * bytes > kMostBytesOfRow - pack * bytes)
            << packs << " of " << pack;
      }
    }
  }
}

TEST(CachedRow, LetsTwoBlocksBeOnAMultiprocessorWhereTheyFit) {
  EXPECT_EQ(CachedRowShape(7, 6288, 2 * 50'304).threads, 512u);  // 50,304 numbers in bfloat16
  EXPECT_EQ(CachedRowShape(7, 6288, 2 * 50'304).blocks_x, 7u);
  EXPECT_EQ(CachedRowShape(7, 16'032, 160 << 10).threads, 1024u);  // 128,256 numbers in bfloat16
  EXPECT_EQ(CachedRowShape(1, 3, 48).threads, 32u);
  EXPECT_LE(2 * (kMostBytesOfTwo + 1024), 227 << 10);
}

}  // namespace
}  // namespace troupe::kernels::cuda
