// The partition of a matmul into tiles of its result, one block each. A block's place is determined
// before the counts of rows are known: tiles of rows are numbered over all counts, up to the
// largest possible number, and blocks beyond the actual number exit at once. Pure.
#ifndef TROUPE_KERNELS_CUDA_DEVICE_CODE_MATMUL_TILING_H_
#define TROUPE_KERNELS_CUDA_DEVICE_CODE_MATMUL_TILING_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/backend/arguments.h"
#include "kernels/numerics/anywhere.h"

namespace troupe::kernels::cuda {

struct MatmulTiling {
  int tile_rows, tile_columns;      // size of a tile of the result
  int64_t row_tiles, column_tiles;  // number of tiles in one matrix of the result
  int64_t matrices;                 // in the result: one per expert for a weight gradient, else one
  int64_t blocks() const { return row_tiles * column_tiles * matrices; }
};

struct TilePlace {
  int64_t matrix, row_tile, column_tile;
};

// Tiles that are computed at the same time share rows and columns of the operands: blocks go down
// kTilesDown tiles of rows before they go to the next column.
inline constexpr int64_t kTilesDown = 8;

// The place of block `block`; every place has exactly one block.
TROUPE_ANYWHERE constexpr TilePlace PlaceOf(int64_t block, int64_t row_tiles,
                                            int64_t column_tiles) {
  const int64_t tiles = row_tiles * column_tiles;
  const int64_t matrix = block / tiles, tile = block % tiles;
  const int64_t first = tile / (kTilesDown * column_tiles) * kTilesDown;
  const int64_t down = row_tiles - first < kTilesDown ? row_tiles - first : kTilesDown;
  const int64_t within = tile - first * column_tiles;
  return {matrix, first + within % down, within / down};
}

// Shared memory for the steps of a bfloat16 tile: kMatmulSteps steps are in flight at once, each
// covering kMatmulDepth of the summed dimension.
inline constexpr int kMatmulDepth = 32;
inline constexpr int kMatmulSteps = 4;
constexpr size_t MatmulSharedBytes(int tile_rows, int tile_columns) {
  return static_cast<size_t>(tile_rows + tile_columns) * kMatmulDepth * kMatmulSteps * 2;
}

// The shape for tiles of this size.
inline MatmulTiling TilingOf(const MatmulArgs& args, int tile_rows, int tile_columns) {
  const auto tiles = [](int64_t extent, int64_t tile) { return (extent + tile - 1) / tile; };
  const bool weight = args.kind == MatmulKind::kWeightGradient;
  MatmulTiling shape{tile_rows, tile_columns, 0, 0, weight ? args.experts : 1};
  shape.column_tiles = tiles(args.kind == MatmulKind::kForward ? args.n : args.k, tile_columns);
  if (weight) {
    shape.row_tiles = tiles(args.n, tile_rows);
  } else if (args.counts == nullptr) {
    shape.row_tiles = tiles(args.rows, tile_rows);
  } else {
    // The last tile of each count may have only one row; a count without rows has no tile.
    shape.row_tiles =
        std::min((args.rows + args.num_counts * (tile_rows - 1)) / tile_rows, args.rows);
  }
  return shape;
}

// Whether large tiles would leave multiprocessors idle, or the rows of counts would fill only a
// small part of them.
inline bool UsesSmallTiles(const MatmulArgs& args, int large) {
  constexpr int64_t kMultiprocessors = 132;
  const bool few_rows =
      args.kind != MatmulKind::kWeightGradient && args.rows < args.num_counts * large;
  return few_rows || TilingOf(args, large, large).blocks() < kMultiprocessors;
}

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_DEVICE_CODE_MATMUL_TILING_H_
