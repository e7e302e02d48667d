// The partition of attention into thread blocks: tiles as pure functions of the padded head dim,
// and the launches that result from them. Host code; constexpr functions are also for kernels.
#ifndef TROUPE_KERNELS_CUDA_KERNELS_ATTENTION_SHAPE_H_
#define TROUPE_KERNELS_CUDA_KERNELS_ATTENTION_SHAPE_H_

#include <cstddef>
#include <cstdint>

#include "kernels/backend/arguments.h"
#include "kernels/cuda/device_code/launch.h"

namespace troupe::kernels::cuda {

// The head dims that kernels are compiled for; a head dim is padded with zeros to the next of them.
// 0: wider than all of them.
constexpr int PaddedHeadDim(int64_t head_dim) {
  return head_dim <= 64 ? 64 : head_dim <= 128 ? 128 : head_dim <= 256 ? 256 : 0;
}

// The tile of a block: the block's own rows (queries, or keys for kKeyGradient), 16 · row_tiles per
// warp, against `others` rows at a time. All are multiples of 16.
struct AttentionTile {
  int warps, row_tiles, others;
  int columns;  // columns of the head dim that a block computes
  constexpr int rows() const { return 16 * row_tiles * warps; }
  constexpr int threads() const { return 32 * warps; }
};

enum class AttentionPass : uint8_t { kForward, kQueryGradient, kKeyGradient };

// Limited by the 255 registers of a thread. A warp's own rows need 4 · row_tiles · columns / 8
// registers for each of the one or two results, and 4 · row_tiles · others / 8 for the scores and
// again for their gradient.
constexpr AttentionTile TileOf(AttentionPass pass, int padded_head_dim, bool bfloat16) {
  const bool of_keys = pass == AttentionPass::kKeyGradient;
  if (!bfloat16) {
    return {.warps = 4,
            .row_tiles = 1,
            .others = padded_head_dim == 64                ? 64
                      : padded_head_dim == 128 && !of_keys ? 32
                                                           : 16,
            .columns = padded_head_dim == 256 && of_keys ? 128 : padded_head_dim};
  }
  switch (pass) {
    case AttentionPass::kForward:
      if (padded_head_dim == 256) return {.warps = 8, .row_tiles = 1, .others = 32, .columns = 256};
      return {.warps = 4,
              .row_tiles = 2,
              .others = padded_head_dim == 64 ? 64 : 32,
              .columns = padded_head_dim};
    case AttentionPass::kQueryGradient:
      if (padded_head_dim == 256) return {.warps = 4, .row_tiles = 1, .others = 32, .columns = 256};
      return {.warps = 8, .row_tiles = 1, .others = 64, .columns = padded_head_dim};
    case AttentionPass::kKeyGradient:
      break;
  }
  if (padded_head_dim == 256) return {.warps = 4, .row_tiles = 1, .others = 32, .columns = 128};
  return {.warps = 8,
          .row_tiles = 1,
          .others = padded_head_dim == 64 ? 64 : 32,
          .columns = padded_head_dim};
}

// The local keys [begin, end) of a sample.
struct KeyRange {
  int32_t begin, end;
};
// The state of a query where a block's own rows are keys: lse in base 2, delta, and the range of
// keys that it attends to.
struct QueryState {
  float lse, delta;
  KeyRange visible;
};

// Bytes of shared memory: the block's own rows once (of both operands for a gradient), rows of both
// other operands twice, because the next ones are loaded while these are in use. The state of each
// query follows.
constexpr size_t AttentionSharedBytes(AttentionPass pass, int padded_head_dim, bool bfloat16) {
  const AttentionTile tile = TileOf(pass, padded_head_dim, bfloat16);
  const int own = pass == AttentionPass::kForward ? tile.rows() : 2 * tile.rows();
  // Bytes of one row of a SharedTile.
  const size_t row = static_cast<size_t>(padded_head_dim) * (bfloat16 ? 2 : 4) + 16;
  const size_t queries = pass == AttentionPass::kKeyGradient
                             ? static_cast<size_t>(2 * tile.others) * sizeof(QueryState)
                             : static_cast<size_t>(tile.rows()) * sizeof(KeyRange);
  return static_cast<size_t>(own + 4 * tile.others) * row + queries;
}

// The work of block x of a launch: rows [first, first + tile.rows()) of one head of a sample. Heads
// of all samples vary fastest. The rows with the most work come first: the last queries, or the
// first keys. REQUIRES: rows of a sample, heads of all samples, and blocks are each fewer than
// 2^31.
struct AttentionPlace {
  int sample, head, first;
};
constexpr AttentionPlace PlaceOf(AttentionPass pass, const AttentionRows& rows, int tile_rows,
                                 unsigned block) {
  const bool of_keys = pass == AttentionPass::kKeyGradient;
  const auto heads = static_cast<unsigned>(of_keys ? rows.key_value_heads : rows.query_heads);
  const int all = static_cast<int>(of_keys ? rows.keys.rows : rows.queries.rows);
  const unsigned units = static_cast<unsigned>(rows.samples) * heads;
  const int unit = static_cast<int>(block % units), order = static_cast<int>(block / units);
  const int of_rows = of_keys ? order : (all - 1) / tile_rows - order;
  return {unit / static_cast<int>(heads), unit % static_cast<int>(heads), of_rows * tile_rows};
}

// REQUIRES: PaddedHeadDim is not 0; there are fewer than 2^31 blocks.
inline LaunchShape AttentionShape(AttentionPass pass, const AttentionRows& rows, bool bfloat16) {
  const int padded = PaddedHeadDim(rows.head_dim);
  const AttentionTile tile = TileOf(pass, padded, bfloat16);
  const bool of_keys = pass == AttentionPass::kKeyGradient;
  const int64_t heads = of_keys ? rows.key_value_heads : rows.query_heads;
  const int64_t all = of_keys ? rows.keys.rows : rows.queries.rows;
  const int64_t of_rows = (all + tile.rows() - 1) / tile.rows();
  return {.blocks_x = static_cast<unsigned>(rows.samples * heads * of_rows),
          .blocks_y = static_cast<unsigned>(padded / tile.columns),
          .threads = static_cast<unsigned>(tile.threads()),
          .shared_bytes = AttentionSharedBytes(pass, padded, bfloat16)};
}

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_KERNELS_ATTENTION_SHAPE_H_
