// Consecutive groups of rows whose sizes are counts in device memory.
#ifndef TROUPE_KERNELS_CUDA_DEVICE_CODE_COUNTED_ROWS_H_
#define TROUPE_KERNELS_CUDA_DEVICE_CODE_COUNTED_ROWS_H_

#include <cstdint>

#include "kernels/cuda/device_code/block_scan.h"
#include "kernels/cuda/device_code/simt.h"

namespace troupe::kernels::cuda {

// Σ of counts [begin, end).
TROUPE_DEVICE int64_t RowsOfCounts(const int32_t* counts, int64_t begin, int64_t end) {
  int64_t rows = 0;
  for (int64_t c = begin; c < end; ++c) rows += counts[c];
  return rows;
}

// One tile of at most `tile_rows` rows; the rows of each count are cut into such tiles.
struct RowTile {
  int64_t count = -1;  // index of the count; -1: no such tile
  int32_t begin = 0;   // rows [begin, end) among all rows
  int32_t end = 0;
};

// The `tile`-th tile, in order. All lanes of a warp must call it together; all get the result.
TROUPE_DEVICE RowTile RowTileOf(const int32_t* counts, int64_t num_counts, int tile_rows,
                                int tile) {
  int32_t tiles_before = 0, rows_before = 0;
  for (int64_t first = 0; first < num_counts; first += kWarp) {
    const int32_t count = first + Lane() < num_counts ? counts[first + Lane()] : 0;
    const int32_t tiles = (count + tile_rows - 1) / tile_rows;
    const int32_t tiles_through = tiles_before + InclusiveWarpScan(tiles);
    const int32_t rows_through = rows_before + InclusiveWarpScan(count);
    // Finds the first lane whose tiles extend beyond this one.
    int lane = tiles_through > tile ? Lane() : kWarp;
    for (int lanes = kWarp / 2; lanes > 0; lanes /= 2) {
      const int other = ShuffleXor(lane, lanes);
      if (other < lane) lane = other;
    }
    if (lane < kWarp) {
      const int32_t within = tile - ShuffleFrom(tiles_through - tiles, lane);
      const int32_t end = ShuffleFrom(rows_through, lane);
      const int32_t begin = ShuffleFrom(rows_through - count, lane) + within * tile_rows;
      return {first + lane, begin, begin + tile_rows < end ? begin + tile_rows : end};
    }
    tiles_before = ShuffleFrom(tiles_through, kWarp - 1);
    rows_before = ShuffleFrom(rows_through, kWarp - 1);
  }
  return {};
}

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_DEVICE_CODE_COUNTED_ROWS_H_
