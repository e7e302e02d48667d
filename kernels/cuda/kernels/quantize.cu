// FP8 quantisation in tiles of kTile x kTile, one block per tile. The elements are read, or
// computed from what is read, once into registers, for both forms; only the FP8 values of the
// transposed form pass through shared memory. amax is a maximum of integers (the bits of
// magnitudes), so that it does not depend on the order. Without a history or block scales, a
// preceding launch computes the amax, from the stored tensor or by computing it from its source.
#include "kernels/cuda/kernels/quantize.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#ifdef __CUDACC__
#include <cuda_fp8.h>
#endif

#include "kernels/cuda/device_code/numbers.h"
#include "kernels/cuda/device_code/quantize_tile.h"
#include "kernels/cuda/device_code/shapes.h"
#include "kernels/cuda/kernels/quantize_source.h"
#include "kernels/numerics/bfloat16.h"
#include "kernels/numerics/float8.h"
#include "model/program/float8.h"

namespace troupe::kernels::cuda {
namespace {

using model::QuantizeSource;

constexpr int kThreads = kQuantizeThreads;
constexpr int kMostAmaxBlocks = kThreads;  // each thread reads one block's result

struct QuantizeLaunchArgs {
  QuantizeArgs quantize;
  int32_t amax_blocks;
  int32_t tiles_across, tiles;  // tiles in one half of the source's output
  int32_t tiles_of_all;
  bool source_packs, rows_pack, columns_pack;  // rows may be accessed sixteen bytes at a time
};

// The FP8 values of two numbers, as by Quantized, the first in the low bits. Uses the device's
// conversion where it exists; results are identical except for the bits of a NaN. REQUIRES: no
// value is infinite.
template <Float8Format kFormat>
TROUPE_DEVICE uint32_t QuantizedPair(float a, float b, float inverse_scale) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  return __nv_cvt_float2_to_fp8x2({a * inverse_scale, b * inverse_scale}, __NV_SATFINITE,
                                  kFormat == Float8Format::kE4M3 ? __NV_E4M3 : __NV_E5M2);
#else
  return Quantized(kFormat, a, inverse_scale) | uint32_t{Quantized(kFormat, b, inverse_scale)} << 8;
#endif
}

// Selects four of the eight bytes of a (the first four) and b; the i-th four bits of `which` select
// byte i.
TROUPE_DEVICE uint32_t BytesOf(uint32_t a, uint32_t b, uint32_t which) {
#ifdef __CUDA_ARCH__
  return __byte_perm(a, b, which);
#else
  uint32_t bytes = 0;
  for (int i = 0; i < 4; ++i) {
    const uint32_t from = which >> 4 * i & 7u;
    bytes |= ((from < 4 ? a : b) >> 8 * (from % 4) & 0xFFu) << 8 * i;
  }
  return bytes;
#endif
}

// The inverse of a scale, which is a power of two.
TROUPE_DEVICE float InverseOf(float scale) {
  return std::bit_cast<float>(0x7F000000u - std::bit_cast<uint32_t>(scale));
}

// The amax over all threads of the block; every thread gets the result. `shared`: f[33], as for
// BlockSum.
TROUPE_DEVICE float BlockLargest(float value, float* shared) {
  for (int lanes = kWarp / 2; lanes > 0; lanes /= 2)
    value = LargerMagnitude(value, ShuffleXor(value, lanes));
  if (Lane() == 0) shared[Warp()] = value;
  SyncBlock();
  if (Warp() == 0) {
    float of_warp = Lane() < kThreads / kWarp ? shared[Lane()] : 0.0f;
    for (int lanes = kWarp / 2; lanes > 0; lanes /= 2)
      of_warp = LargerMagnitude(of_warp, ShuffleXor(of_warp, lanes));
    if (Lane() == 0) shared[kWarp] = of_warp;
  }
  SyncBlock();
  return shared[kWarp];
}

// The amax of a history; 0 if there is no history yet.
TROUPE_DEVICE float LargestOf(const float* history) {
  float largest = 0;
  if (history == nullptr) return largest;
  for (int i = 0; i < model::kAmaxSteps; ++i) largest = LargerMagnitude(largest, history[i]);
  return largest;
}

// The amax of a stored tensor.
TROUPE_KERNEL_OF(kThreads, 4) void ValueAmaxKernel(QuantizeLaunchArgs args) {
  TROUPE_SHARED float shared[kWarp + 1];
  if (LargestOf(args.quantize.history) > 0) return;
  const auto* x = static_cast<const BFloat16*>(args.quantize.x);
  const int64_t count = args.quantize.rows * args.quantize.columns;
  const int64_t stride = int64_t{args.amax_blocks} * kThreads * kAcross;
  int64_t i = (int64_t{BlockIndex().x} * kThreads + ThreadIndex()) * kAcross;
  uint32_t most = 0;
  if (args.source_packs) {
    constexpr int kAtOnce = 4;  // so that enough loads are in flight
    for (; i + (kAtOnce - 1) * stride < count; i += kAtOnce * stride) {
      Neighbours packs[kAtOnce];
      TROUPE_UNROLL
      for (int k = 0; k < kAtOnce; ++k) packs[k] = NeighboursAt(x + i + k * stride);
      TROUPE_UNROLL
      for (int k = 0; k < kAtOnce; ++k) most = Larger(most, LargestOf(packs[k]));
    }
    for (; i < count; i += stride) most = Larger(most, LargestOf(NeighboursAt(x + i)));
  } else {
    for (; i < count; i += stride) {
      for (int64_t k = i; k < count && k < i + kAcross; ++k)
        most = Larger(most, x[k].bits & 0x7FFFu);
    }
  }
  const float amax = BlockLargest(NumberOf(most), shared);
  if (ThreadIndex() == 0) args.quantize.partial[BlockIndex().x] = amax;
}

template <typename Source>
TROUPE_DEVICE TilePlace PlaceOf(const QuantizeLaunchArgs& args, int tile) {
  const int first_row = tile / args.tiles_across * kTile,
            first_column = tile % args.tiles_across * kTile;
  const int64_t rows = args.quantize.rows - first_row;
  const int64_t columns = args.quantize.columns / Source::kHalves - first_column;
  return {first_row, first_column, static_cast<int>(rows < kTile ? rows : kTile),
          static_cast<int>(columns < kTile ? columns : kTile)};
}

// The amax of a tensor that SwiGLU or its gradient computes; QuantizeKernel computes it again.
template <typename Source>
TROUPE_KERNEL_OF(kThreads, 4)
void SourceAmaxKernel(QuantizeLaunchArgs args) {
  TROUPE_SHARED float shared[kWarp + 1];
  if (LargestOf(args.quantize.history) > 0) return;
  uint32_t most = 0;
  for (int tile = static_cast<int>(BlockIndex().x); tile < args.tiles; tile += args.amax_blocks) {
    MakeTile<Source>(args.quantize, PlaceOf<Source>(args, tile), args.source_packs,
                     [&](int, const auto& made) {
                       TROUPE_UNROLL
                       for (const Neighbours& row : made) most = Larger(most, LargestOf(row));
                     });
  }
  const float amax = BlockLargest(NumberOf(most), shared);
  if (ThreadIndex() == 0) args.quantize.partial[BlockIndex().x] = amax;
}

// The place in shared memory of the transposed FP8 values of column `column`, four rows per word.
// Each column has its own line; the words of a line are permuted by groups of columns, so that
// neither writes nor reads have bank conflicts.
constexpr int kWordsOfLine = kTile / 4;
TROUPE_DEVICE int TransposedWord(int column, int word) {
  return column * kWordsOfLine + (word ^ column / kAcross * 2);
}

// Stores the first `count` of N FP8 values, four per word.
template <int N>
TROUPE_DEVICE void StoreFp8Values(uint8_t* to, int count, bool packs,
                                  const uint32_t (&words)[N / 4]) {
  if (packs && count >= N) {
    Pack<uint32_t, N / 4> pack;
    TROUPE_UNROLL
    for (int i = 0; i < N / 4; ++i) pack.values[i] = words[i];
    *reinterpret_cast<Pack<uint32_t, N / 4>*>(to) = pack;
    return;
  }
  TROUPE_UNROLL
  for (int i = 0; i < N; ++i) {
    if (i < count) to[i] = static_cast<uint8_t>(words[i / 4] >> 8 * (i % 4));
  }
}

// `kLines`: 1 x 128 scales, so that each form has its own FP8 values; otherwise one scale for the
// tile or the tensor.
template <bool kLines>
struct TileShared {
  static constexpr int kWarps = kThreads / kWarp;
  Pack<uint32_t, 4> transposed[kTile * kWordsOfLine / 4];
  // Maxima of rows, and of columns per warp.
  uint32_t most_of_lines[kLines ? (1 + kWarps) * kTile : 1];
  // Inverse scales of rows, then of columns.
  float of_lines[kLines ? 2 * kTile : 1];
  float largest[kWarp + 1];
};

// The scale of the whole tensor, from the history if there is one (delayed scaling), else from its
// amax. Every thread gets the same result.
template <Float8Format kFormat>
TROUPE_DEVICE float WholeScale(const QuantizeLaunchArgs& args, float* shared) {
  if (const float of_steps = LargestOf(args.quantize.history); of_steps > 0)
    return DelayedScaleOf(kFormat, of_steps);
  const int thread = static_cast<int>(ThreadIndex());
  return ScaleOf(
      kFormat,
      BlockLargest(thread < args.amax_blocks ? args.quantize.partial[thread] : 0.0f, shared));
}

// The numbers of the scales' blocks along both dimensions, and the block of a tile.
struct ScaleBlocks {
  TROUPE_DEVICE ScaleBlocks(const QuantizeArgs& q, const TilePlace& place)
      : down((q.rows + kTile - 1) / kTile),
        across((q.columns + kTile - 1) / kTile),
        row(int64_t{place.first_row} / kTile),
        column(int64_t{place.first_column} / kTile) {}
  int64_t down, across, row, column;
};

// Computes the 1 x 128 scales of a tile, of which this thread holds x, and stores them; their
// inverses are then in shared.of_lines. most_of_rows: the largest magnitudes of this thread's rows.
template <Float8Format kFormat>
TROUPE_DEVICE void ScaleLines(const QuantizeArgs& q, const TilePlace& place,
                              const ScaleBlocks& blocks, const Neighbours (&x)[kRowsOfThread],
                              uint32_t (&most_of_rows)[kRowsOfThread], TileShared<true>& shared) {
  const int thread = static_cast<int>(ThreadIndex()), column = ColumnOfThread(thread);
  TROUPE_UNROLL
  for (int i = 0; i < kRowsOfThread; ++i) {
    // Half a warp holds one row.
    for (int lanes = kThreadsAcross / 2; lanes > 0; lanes /= 2) {
      most_of_rows[i] = Larger(most_of_rows[i], ShuffleXor(most_of_rows[i], lanes));
    }
    if (column == 0) shared.most_of_lines[RowOfThread(thread, i)] = most_of_rows[i];
  }
  TROUPE_UNROLL
  for (int k = 0; k < kAcross; ++k) {
    uint32_t most_of_column = 0;
    TROUPE_UNROLL
    for (int i = 0; i < kRowsOfThread; ++i) {
      const Pair pair = x[i].values[k / 2];
      most_of_column =
          Larger(most_of_column, k % 2 == 0 ? FirstMagnitude(pair) : SecondMagnitude(pair));
    }
    most_of_column = Larger(most_of_column, ShuffleXor(most_of_column, kThreadsAcross));
    if (Lane() < kThreadsAcross)
      shared.most_of_lines[(1 + Warp()) * kTile + column + k] = most_of_column;
  }
  SyncBlock();
  // One thread for each row, and one for each column.
  const bool is_row = thread < kTile;
  const int line = thread % kTile;
  uint32_t most_of_line = is_row ? shared.most_of_lines[line] : 0;
  for (int warp = 0; warp < TileShared<true>::kWarps && !is_row; ++warp) {
    most_of_line = Larger(most_of_line, shared.most_of_lines[(1 + warp) * kTile + line]);
  }
  const float scale = ScaleOf(kFormat, NumberOf(most_of_line));
  shared.of_lines[thread] = InverseOf(scale);
  float* const scales = is_row ? q.rows_scale : q.columns_scale;
  if (scales != nullptr && line < (is_row ? place.rows : place.columns)) {
    scales[is_row ? (int64_t{place.first_row} + line) * blocks.across + blocks.column
                  : (int64_t{place.first_column} + line) * blocks.down + blocks.row] = scale;
  }
  SyncBlock();
}

// Writes the transposed FP8 values of kDown rows from `row` on to shared memory. fp8_values: the
// FP8 values of these rows, which both forms share unless there are 1 x 128 scales.
template <Float8Format kFormat, bool kLines>
TROUPE_DEVICE void TransposeRows(const Neighbours* x,
                                 const uint32_t (&fp8_values)[kDown][kAcross / 4], int row,
                                 TileShared<kLines>& shared) {
  const int column = ColumnOfThread(static_cast<int>(ThreadIndex()));
  const auto store_word = [&](int k, uint32_t word) {
    const int at = TransposedWord(column + k, row / 4);
    shared.transposed[at / 4].values[at % 4] = word;
  };
  if constexpr (kLines) {
    TROUPE_UNROLL
    for (int k = 0; k < kAcross; ++k) {
      const float of_column = shared.of_lines[kTile + column + k];
      const auto value = [&](int i) {
        const Pair pair = x[i].values[k / 2];
        return k % 2 == 0 ? First(pair) : Second(pair);
      };
      store_word(k, QuantizedPair<kFormat>(value(0), value(1), of_column) |
                        QuantizedPair<kFormat>(value(2), value(3), of_column) << 16);
    }
  } else {
    TROUPE_UNROLL
    for (int w = 0; w < kAcross / 4; ++w) {
      const uint32_t upper[2] = {BytesOf(fp8_values[0][w], fp8_values[1][w], 0x5140),
                                 BytesOf(fp8_values[0][w], fp8_values[1][w], 0x7362)};
      const uint32_t lower[2] = {BytesOf(fp8_values[2][w], fp8_values[3][w], 0x5140),
                                 BytesOf(fp8_values[2][w], fp8_values[3][w], 0x7362)};
      TROUPE_UNROLL
      for (int k = 0; k < 4; ++k)
        store_word(4 * w + k, BytesOf(upper[k / 2], lower[k / 2], k % 2 == 0 ? 0x5410 : 0x7632));
    }
  }
}

// Stores the transposed form of a tile, which is in shared memory.
template <bool kLines>
TROUPE_DEVICE void StoreTransposed(const QuantizeLaunchArgs& args, const TilePlace& place,
                                   const TileShared<kLines>& shared) {
  const QuantizeArgs& q = args.quantize;
  const int64_t first_row = place.first_row, first_column = place.first_column;
  const int thread = static_cast<int>(ThreadIndex());
  for (int i = thread; i < kTile * kTile / 16; i += kThreads) {
    const int line = i / (kTile / 16), along = i % (kTile / 16) * 16;
    if (line >= place.columns || along >= place.rows) continue;
    const auto four = shared.transposed[TransposedWord(line, along / 4) / 4];
    const bool swapped = line / kAcross % 2 != 0;
    const uint32_t words[4] = {
        swapped ? four.values[2] : four.values[0], swapped ? four.values[3] : four.values[1],
        swapped ? four.values[0] : four.values[2], swapped ? four.values[1] : four.values[3]};
    StoreFp8Values<16>(q.columns_form + (first_column + line) * q.rows + first_row + along,
                       place.rows - along, args.columns_pack, words);
  }
}

// Quantises one tile, of which this thread holds x. inverse: the inverse of the tensor's scale, if
// it has a single one; partial: the index at which to store the tile's amax, if it is requested.
template <Float8Format kFormat, bool kLines>
TROUPE_DEVICE void QuantizeTile(const QuantizeLaunchArgs& args, const TilePlace& place,
                                float inverse, int partial, Neighbours (&x)[kRowsOfThread],
                                TileShared<kLines>& shared) {
  const QuantizeArgs& q = args.quantize;
  const int64_t first_row = place.first_row, first_column = place.first_column;
  const int rows = place.rows, columns = place.columns;
  const ScaleBlocks blocks(q, place);
  const int thread = static_cast<int>(ThreadIndex()), column = ColumnOfThread(thread);
  const auto row_of = [=](int i) { return RowOfThread(thread, i); };

  uint32_t most_of_rows[kRowsOfThread], most = 0;
  TROUPE_UNROLL
  for (int i = 0; i < kRowsOfThread; ++i) {
    most_of_rows[i] = LargestOf(x[i]);
    most = Larger(most, most_of_rows[i]);
  }
  float largest = NumberOf(most);
  const bool of_square = q.block_rows > 0 && !kLines, folds = q.amax != nullptr;
  if (of_square || folds) largest = BlockLargest(largest, shared.largest);
  if (folds && thread == 0) q.partial[partial] = largest;

  if constexpr (kLines) {
    ScaleLines<kFormat>(q, place, blocks, x, most_of_rows, shared);
  } else if (of_square) {
    const float scale = ScaleOf(kFormat, largest);
    if (thread == 0 && q.rows_scale != nullptr)
      q.rows_scale[blocks.row * blocks.across + blocks.column] = scale;
    if (thread == 0 && q.columns_scale != nullptr)
      q.columns_scale[blocks.column * blocks.down + blocks.row] = scale;
    inverse = InverseOf(scale);
  }

  if (most >= kInfinite) {
    TROUPE_UNROLL
    for (int i = 0; i < kRowsOfThread; ++i) {
      TROUPE_UNROLL
      for (Pair& pair : x[i].values) pair = WithoutInfinities(pair);
    }
  }

  TROUPE_UNROLL
  for (int part = 0; part < kParts; ++part) {
    uint32_t fp8_values[kDown][kAcross / 4];  // FP8 values of rows, four per word
    TROUPE_UNROLL
    for (int i = 0; i < kDown; ++i) {
      const int at = part * kDown + i;
      const float of_row = kLines ? shared.of_lines[row_of(at)] : inverse;
      TROUPE_UNROLL
      for (int w = 0; w < kAcross / 4; ++w) {
        const Pair left = x[at].values[2 * w], right = x[at].values[2 * w + 1];
        fp8_values[i][w] = QuantizedPair<kFormat>(First(left), Second(left), of_row) |
                           QuantizedPair<kFormat>(First(right), Second(right), of_row) << 16;
      }
      if (q.rows_form != nullptr && row_of(at) < rows && column < columns) {
        StoreFp8Values<kAcross>(
            q.rows_form + (first_row + row_of(at)) * q.columns + first_column + column,
            columns - column, args.rows_pack, fp8_values[i]);
      }
    }
    if (q.columns_form == nullptr) continue;
    TransposeRows<kFormat>(x + part * kDown, fp8_values, row_of(part * kDown), shared);
  }
  if (q.columns_form == nullptr) return;
  SyncBlock();
  StoreTransposed(args, place, shared);
}

// Shared memory for computed halves that wait to be quantised: Neighbours [kHalves, kRowsOfThread,
// kThreads]; each thread uses only its own.
template <typename Source>
constexpr size_t kMadeBytes = std::is_same_v<Source, ValueSource>
                                  ? 0
                                  : sizeof(Neighbours) * Source::kHalves* kRowsOfThread* kThreads;

template <Float8Format kFormat, bool kLines, typename Source>
TROUPE_KERNEL_OF(kThreads, kLines ? 2 : Source::kBlocks)
void QuantizeKernel(QuantizeLaunchArgs args) {
  constexpr bool kMakes = kMadeBytes < Source >> 0;
  TROUPE_SHARED TileShared<kLines> shared;
  const QuantizeArgs& q = args.quantize;
  const int block = static_cast<int>(BlockIndex().x), thread = static_cast<int>(ThreadIndex());
  TilePlace place = PlaceOf<Source>(args, block);
  Neighbours x[kRowsOfThread];
  Neighbours* made_rows = nullptr;
  if constexpr (kMakes) {
    made_rows = reinterpret_cast<Neighbours*>(DynamicShared()) + thread;
    MakeTile<Source>(q, place, args.source_packs, [=](int i, const auto& made) {
      TROUPE_UNROLL
      for (int half = 0; half < Source::kHalves; ++half)
        made_rows[(half * kRowsOfThread + i) * kThreads] = made[half];
    });
  } else {
    LoadTile(q, place, args.source_packs, x);
  }
  float inverse = 0;
  if (!kLines && q.block_rows == 0) {
    const float scale = WholeScale<kFormat>(args, shared.largest);
    if (block == 0 && thread == 0)
      *(q.rows_scale != nullptr ? q.rows_scale : q.columns_scale) = scale;
    inverse = InverseOf(scale);
  }
  TROUPE_UNROLL
  for (int half = 0; half < Source::kHalves; ++half) {
    if constexpr (kMakes) {
      if (half > 0) SyncBlock();  // wait until the FP8 values of the previous half are read
      TROUPE_UNROLL
      for (int i = 0; i < kRowsOfThread; ++i)
        x[i] = made_rows[(half * kRowsOfThread + i) * kThreads];
    }
    QuantizeTile<kFormat, kLines>(args, place, inverse,
                                  args.amax_blocks + block * Source::kHalves + half, x, shared);
    place.first_column += static_cast<int>(q.columns / Source::kHalves);
  }
}

TROUPE_KERNEL_OF(kThreads, 1) void QuantizeFinishKernel(QuantizeLaunchArgs args) {
  TROUPE_SHARED float shared[kWarp + 1];
  const QuantizeArgs& q = args.quantize;
  float largest = 0;
  for (int i = static_cast<int>(ThreadIndex()); i < args.tiles_of_all; i += kThreads) {
    largest = LargerMagnitude(largest, q.partial[args.amax_blocks + i]);
  }
  largest = BlockLargest(largest, shared);
  if (ThreadIndex() == 0) *q.amax = q.accumulate ? LargerMagnitude(*q.amax, largest) : largest;
}

int64_t Tiles(int64_t extent) { return (extent + kTile - 1) / kTile; }

// Whether a block handles one tile in each half of the output of SwiGLU's gradient. With block
// scales this requires that these tiles are scale blocks of the whole tensor.
bool TilesHalves(const QuantizeArgs& args) {
  return args.source == QuantizeSource::kSwiGluGrad &&
         (args.block_rows == 0 || args.columns / 2 % kTile == 0);
}

// The number of parts of the tensor that are tiled separately.
int HalvesOf(const QuantizeArgs& args) { return TilesHalves(args) ? SwiGluGradSource::kHalves : 1; }
int64_t TilesOfHalf(const QuantizeArgs& args) {
  return Tiles(args.rows) * Tiles(args.columns / HalvesOf(args));
}

int64_t AmaxBlocks(const QuantizeArgs& args) {
  const bool is_value = args.source == QuantizeSource::kValue;
  constexpr int64_t kOfBlock = int64_t{kThreads} * 64;
  return std::clamp<int64_t>(is_value ? args.rows * args.columns / kOfBlock : TilesOfHalf(args), 1,
                             kMostAmaxBlocks);
}

bool SourcePacks(const QuantizeArgs& args) {
  switch (args.source) {
    case QuantizeSource::kValue:
      return Packs(args.columns, sizeof(BFloat16), {args.x});
    case QuantizeSource::kSwiGlu:
      return Packs(args.columns, sizeof(BFloat16), {args.gu});
    case QuantizeSource::kSwiGluGrad:
      return Packs(args.columns / 2, sizeof(BFloat16), {args.dy, args.gu});
  }
  return false;
}

// The kernels to launch for a source.
struct Kernels {
  void (*amax)(QuantizeLaunchArgs);  // used with a single scale
  void (*quantize)(QuantizeLaunchArgs);
  size_t shared_bytes;  // dynamic shared memory of `quantize`
};
template <Float8Format kFormat, typename Source>
Kernels KernelsOf(const QuantizeArgs& args, void (*amax)(QuantizeLaunchArgs)) {
  return {amax,
          args.block_rows == 1 ? &QuantizeKernel<kFormat, true, Source>
                               : &QuantizeKernel<kFormat, false, Source>,
          kMadeBytes<Source>};
}
Kernels KernelsOf(const QuantizeArgs& args) {
  switch (args.source) {
    case QuantizeSource::kSwiGlu:
      return KernelsOf<Float8Format::kE4M3, SwiGluSource>(args, &SourceAmaxKernel<SwiGluSource>);
    case QuantizeSource::kSwiGluGrad:
      if (!TilesHalves(args)) {
        return {nullptr, &QuantizeKernel<Float8Format::kE5M2, true, SwiGluGradElements>,
                kMadeBytes<SwiGluGradElements>};
      }
      return KernelsOf<Float8Format::kE5M2, SwiGluGradSource>(args,
                                                              &SourceAmaxKernel<SwiGluGradSource>);
    case QuantizeSource::kValue:
      break;
  }
  return args.e5m2 ? KernelsOf<Float8Format::kE5M2, ValueSource>(args, &ValueAmaxKernel)
                   : KernelsOf<Float8Format::kE4M3, ValueSource>(args, &ValueAmaxKernel);
}

}  // namespace

int64_t QuantizeScratchBytes(const QuantizeArgs& args) {
  return (AmaxBlocks(args) + TilesOfHalf(args) * HalvesOf(args)) *
         static_cast<int64_t>(sizeof(float));
}

std::vector<KernelLaunch> Quantize(const QuantizeArgs& args) {
  const int64_t of_half = args.columns / HalvesOf(args), tiles = TilesOfHalf(args);
  const QuantizeLaunchArgs launch = {.quantize = args,
                                     .amax_blocks = static_cast<int32_t>(AmaxBlocks(args)),
                                     .tiles_across = static_cast<int32_t>(Tiles(of_half)),
                                     .tiles = static_cast<int32_t>(tiles),
                                     .tiles_of_all = static_cast<int32_t>(tiles * HalvesOf(args)),
                                     .source_packs = SourcePacks(args),
                                     .rows_pack = Packs(of_half, 1, {args.rows_form}),
                                     .columns_pack = Packs(args.rows, 1, {args.columns_form})};
  const Kernels kernels = KernelsOf(args);
  std::vector<KernelLaunch> launches;
  if (args.block_rows == 0) {
    launches.push_back(MakeLaunch(
        "quantize_amax", kernels.amax,
        {.blocks_x = static_cast<unsigned>(launch.amax_blocks), .threads = kThreads}, launch));
  }
  launches.push_back(MakeLaunch("quantize", kernels.quantize,
                                {.blocks_x = static_cast<unsigned>(tiles),
                                 .threads = kThreads,
                                 .shared_bytes = kernels.shared_bytes},
                                launch));
  if (args.amax != nullptr) {
    launches.push_back(
        MakeLaunch("quantize_finish", &QuantizeFinishKernel, {.threads = kThreads}, launch));
  }
  return launches;
}

}  // namespace troupe::kernels::cuda
