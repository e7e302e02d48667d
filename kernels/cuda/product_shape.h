// How a product is cut into tiles of its result, a block each. A block's place is known before the counts of rows are: tiles
// of rows are numbered over all counts, as many as there can be at most, and blocks beyond those that there are end at once.
// Pure.
#ifndef TROUPE_KERNELS_CUDA_PRODUCT_SHAPE_H_
#define TROUPE_KERNELS_CUDA_PRODUCT_SHAPE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/anywhere.h"
#include "kernels/arguments.h"

namespace troupe::kernels::cuda {

struct ProductShape {
  int tile_rows, tile_columns;        // of the result
  int64_t row_tiles, column_tiles;    // of one matrix of the result
  int64_t matrices;                   // of the result: an expert's each of a weight gradient, else one
  int64_t blocks() const { return row_tiles * column_tiles * matrices; }
};

struct TilePlace {
  int64_t matrix, row_tile, column_tile;
};

// Tiles of one result that are computed at the same time share rows and columns of the factors: blocks go down
// kTilesDown tiles of rows before they go to the next column.
inline constexpr int64_t kTilesDown = 8;

// Where block `block` works. Every place has one.
TROUPE_ANYWHERE constexpr TilePlace PlaceOf(int64_t block, int64_t row_tiles, int64_t column_tiles) {
  const int64_t tiles = row_tiles * column_tiles;
  const int64_t matrix = block / tiles, tile = block % tiles;
  const int64_t first = tile / (kTilesDown * column_tiles) * kTilesDown;
  const int64_t down = row_tiles - first < kTilesDown ? row_tiles - first : kTilesDown;
  const int64_t within = tile - first * column_tiles;
  return {matrix, first + within % down, within / down};
}

// Shared memory of a bfloat16 tile's steps: kProductSteps of them are under way at once, each of kProductDepth of what is
// summed over.
inline constexpr int kProductDepth = 32;
inline constexpr int kProductSteps = 4;
constexpr size_t ProductSharedBytes(int tile_rows, int tile_columns) {
  return static_cast<size_t>(tile_rows + tile_columns) * kProductDepth * kProductSteps * 2;
}

// Of tiles of this size.
inline ProductShape ShapeOf(const ProductArgs& args, int tile_rows, int tile_columns) {
  const auto tiles = [](int64_t extent, int64_t tile) { return (extent + tile - 1) / tile; };
  const bool weight = args.kind == ProductKind::kWeightGradient;
  ProductShape shape{tile_rows, tile_columns, 0, 0, weight ? args.experts : 1};
  shape.column_tiles = tiles(args.kind == ProductKind::kForward ? args.n : args.k, tile_columns);
  if (weight) {
    shape.row_tiles = tiles(args.n, tile_rows);
  } else if (args.counts == nullptr) {
    shape.row_tiles = tiles(args.rows, tile_rows);
  } else {
    // Each count's last tile may be of one row; a count without rows has none.
    shape.row_tiles = std::min((args.rows + args.num_counts * (tile_rows - 1)) / tile_rows, args.rows);
  }
  return shape;
}

// Whether large tiles would leave multiprocessors without work, or rows of counts would fill little of them.
inline bool TakesSmallTiles(const ProductArgs& args, int large) {
  constexpr int64_t kMultiprocessors = 132;
  const bool few_rows = args.kind != ProductKind::kWeightGradient && args.rows < args.num_counts * large;
  return few_rows || ShapeOf(args, large, large).blocks() < kMultiprocessors;
}

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_PRODUCT_SHAPE_H_
