// The work of one block of a matmul: its tile of the result, and the range of the summed dimension.
#ifndef TROUPE_KERNELS_CUDA_DEVICE_CODE_MATMUL_TILE_H_
#define TROUPE_KERNELS_CUDA_DEVICE_CODE_MATMUL_TILE_H_

#include <cstdint>

#include "kernels/backend/arguments.h"
#include "kernels/cuda/device_code/counted_rows.h"
#include "kernels/cuda/device_code/matmul_tiling.h"
#include "kernels/cuda/device_code/simt.h"

namespace troupe::kernels::cuda {

struct MatmulLaunchArgs {
  MatmulArgs matmul;
  int64_t row_tiles, column_tiles;  // as in MatmulTiling
  bool a_packs, b_packs, c_packs;   // rows allow vector loads and stores
};

// [begin, end).
struct Span {
  int32_t begin = 0, end = 0;
};

struct MatmulTile {
  bool works = false;  // false: there is no such tile
  Span rows, columns;  // the result's tile; a weight gradient's is in one expert's matrix
  int64_t expert = 0;
};

// The part of the calling block. All lanes of a warp must call it together.
template <MatmulKind kKind, bool kCounted, int kRows, int kColumns>
TROUPE_DEVICE MatmulTile TileOfBlock(const MatmulLaunchArgs& args) {
  const MatmulArgs& matmul = args.matmul;
  const TilePlace place = PlaceOf(BlockIndex().x, args.row_tiles, args.column_tiles);
  MatmulTile part;
  part.works = true;
  const auto span = [](int64_t tile, int size, int64_t extent) -> Span {
    const int64_t end = (tile + 1) * size;
    return {static_cast<int32_t>(tile * size), static_cast<int32_t>(end < extent ? end : extent)};
  };
  part.columns =
      span(place.column_tile, kColumns, kKind == MatmulKind::kForward ? matmul.n : matmul.k);
  if constexpr (kKind == MatmulKind::kWeightGradient) {
    part.rows = span(place.row_tile, kRows, matmul.n);
    part.expert = place.matrix;
  } else if constexpr (kCounted) {
    const RowTile tile =
        RowTileOf(matmul.counts, matmul.num_counts, kRows, static_cast<int>(place.row_tile));
    part.works = tile.count >= 0;
    part.rows = {tile.begin, tile.end};
    part.expert = part.works ? tile.count % matmul.experts : 0;
  } else {
    part.rows = span(place.row_tile, kRows, matmul.rows);
  }
  return part;
}

// Iterates over the summed dimension in steps of at most kDepth. It consists of features or, for a
// weight gradient, of the expert's rows, count by count.
template <MatmulKind kKind, bool kCounted, int kDepth>
class MatmulSteps {
 public:
  TROUPE_DEVICE MatmulSteps(const MatmulArgs& matmul, int64_t expert)
      : counts_(matmul.counts),
        num_counts_(static_cast<int32_t>(matmul.num_counts)),
        experts_(static_cast<int32_t>(matmul.experts)) {
    if constexpr (kKind != MatmulKind::kWeightGradient) {
      left_ = {0, static_cast<int32_t>(kKind == MatmulKind::kForward ? matmul.k : matmul.n)};
    } else if constexpr (kCounted) {
      next_count_ = static_cast<int32_t>(expert);
    } else {
      // Equal parts of all rows.
      const int64_t each = (matmul.rows + matmul.experts - 1) / matmul.experts,
                    begin = each * expert;
      left_ = {static_cast<int32_t>(begin),
               static_cast<int32_t>(begin + each < matmul.rows ? begin + each : matmul.rows)};
    }
  }

  // Returns an empty span after the last step.
  TROUPE_DEVICE Span Next() {
    if constexpr (kKind == MatmulKind::kWeightGradient && kCounted) {
      while (left_.begin >= left_.end && next_count_ < num_counts_) {
        rows_before_ += static_cast<int32_t>(RowsOfCounts(counts_, counted_, next_count_));
        left_ = {rows_before_, rows_before_ + counts_[next_count_]};
        counted_ = next_count_;
        next_count_ += experts_;
      }
    }
    if (left_.begin >= left_.end) return {};
    const Span step{left_.begin,
                    left_.begin + kDepth < left_.end ? left_.begin + kDepth : left_.end};
    left_.begin = step.end;
    return step;
  }

 private:
  const int32_t* const counts_;
  const int32_t num_counts_, experts_;
  Span left_;                              // remaining features, or remaining rows of a count
  int32_t next_count_ = 0;                 // the count that follows the remaining rows
  int32_t counted_ = 0, rows_before_ = 0;  // rows before count `counted_`
};

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_DEVICE_CODE_MATMUL_TILE_H_
