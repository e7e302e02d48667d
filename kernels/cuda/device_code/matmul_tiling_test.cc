#include "kernels/cuda/device_code/matmul_tiling.h"

#include <gtest/gtest.h>

#include <vector>

#include "kernels/testing/testing.h"

namespace troupe::kernels::cuda {
namespace {

constexpr MatmulKind kKinds[] = {MatmulKind::kForward, MatmulKind::kInputGradient,
                                 MatmulKind::kWeightGradient};

MatmulArgs Args(MatmulKind kind, int64_t rows, int64_t k, int64_t n) {
  MatmulArgs args{};
  args.kind = kind;
  args.rows = rows;
  args.k = k;
  args.n = n;
  args.num_counts = args.experts = 1;
  return args;
}

TEST(MatmulTiling, BlocksCoverEveryElementOfTheResultOnce) {
  for (const MatmulKind kind : kKinds) {
    for (const int64_t experts : {1, 3}) {
      if (experts > 1 && kind != MatmulKind::kWeightGradient) continue;
      for (const auto& [down, across] :
           std::vector<std::pair<int, int>>{{128, 128}, {64, 64}, {16, 256}}) {
        MatmulArgs args = Args(kind, 1300, 777, 513);
        args.experts = experts;
        const MatmulTiling shape = TilingOf(args, down, across);
        const int64_t height = kind == MatmulKind::kWeightGradient ? args.n : args.rows;
        const int64_t width = kind == MatmulKind::kForward ? args.n : args.k;
        std::vector<int> covered(static_cast<size_t>(experts * height * width));
        for (int64_t block = 0; block < shape.blocks(); ++block) {
          const TilePlace place = PlaceOf(block, shape.row_tiles, shape.column_tiles);
          const int64_t end = std::min(height, (place.row_tile + 1) * down);
          const int64_t right = std::min(width, (place.column_tile + 1) * across);
          EXPECT_LT(place.row_tile * down, end);
          EXPECT_LT(place.column_tile * across, right);
          for (int64_t r = place.row_tile * down; r < end; ++r) {
            for (int64_t c = place.column_tile * across; c < right; ++c) {
              ++covered[static_cast<size_t>((place.matrix * height + r) * width + c)];
            }
          }
        }
        EXPECT_EQ(std::ranges::count(covered, 1), static_cast<int64_t>(covered.size()));
      }
    }
  }
}

TEST(MatmulTiling, ThereAreBlocksForTheTilesOfAnyCountsOfRows) {
  TestRandom random;
  for (int round = 0; round < 200; ++round) {
    const int64_t num_counts = random.Integer(1, 40);
    MatmulArgs args = Args(MatmulKind::kForward, 0, 64, 64);
    std::vector<int32_t> counts;
    for (int64_t i = 0; i < num_counts; ++i) {
      counts.push_back(static_cast<int32_t>(random.Integer(0, 1) * random.Integer(0, 300)));
      args.rows += counts.back();
    }
    args.counts = counts.data();
    args.num_counts = num_counts;
    for (const int size : {64, 128}) {
      int64_t tiles = 0;
      for (const int32_t count : counts) tiles += (count + size - 1) / size;
      EXPECT_LE(tiles, TilingOf(args, size, 64).row_tiles);
    }
  }
}

TEST(MatmulTiling, TheStepsOfTwoBlocksFitIntoAMultiprocessorsSharedMemory) {
  for (const int size : {64, 128}) EXPECT_LE(2 * MatmulSharedBytes(size, size), 227u << 10);
  EXPECT_EQ(MatmulSharedBytes(128, 128), 64u << 10);
}

TEST(MatmulTiling, TilesAreSmallWhereLargeOnesAreFewOrRowsOfACountAre) {
  EXPECT_FALSE(UsesSmallTiles(Args(MatmulKind::kForward, 8192, 4096, 4096), 128));
  EXPECT_TRUE(UsesSmallTiles(Args(MatmulKind::kForward, 256, 4096, 1024), 128));
  EXPECT_TRUE(UsesSmallTiles(Args(MatmulKind::kWeightGradient, 65536, 768, 768), 128));
  MatmulArgs grouped = Args(MatmulKind::kForward, 8192, 4096, 4096);
  grouped.num_counts = 128;
  EXPECT_TRUE(UsesSmallTiles(grouped, 128));
}

}  // namespace
}  // namespace troupe::kernels::cuda
