// Values in 8 bits, in tiles of kTile x kTile by a block each: read, or made of what is read, once, into registers, for both
// forms; only codes of the transposed one go through shared memory. Largest magnitudes are maxima of bits, the same in any
// order. Where nothing tells a scale yet, a launch before takes the largest magnitude of a value that is read or made for it.
#include "kernels/cuda/quantize.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#ifdef __CUDACC__
#include <cuda_fp8.h>
#endif

#include "kernels/bfloat16.h"
#include "kernels/cuda/numbers.h"
#include "kernels/cuda/quantize_source.h"
#include "kernels/cuda/quantize_tile.h"
#include "kernels/cuda/shapes.h"
#include "kernels/float8.h"
#include "model/program/float8.h"

namespace troupe::kernels::cuda {
namespace {

using model::QuantizeSource;

constexpr int kThreads = kQuantizeThreads;
constexpr int kMostAmaxBlocks = kThreads;  // a thread each of those that read what they leave

struct QuantizeLaunchArgs {
  QuantizeArgs quantize;
  int32_t amax_blocks;
  int32_t tiles_across, tiles;  // of a half of what the source makes
  int32_t tiles_of_all;
  bool source_packs, rows_pack, columns_pack;  // rows are read and written sixteen bytes at a time
};

// Codes of two values as of Quantized, the first in the low bits; where the device converts by itself, it does, to the same
// but for which NaN. REQUIRES: no value is infinite.
template <Float8Format kFormat>
TROUPE_DEVICE uint32_t TwoCodes(float a, float b, float inverse_scale) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  return __nv_cvt_float2_to_fp8x2({a * inverse_scale, b * inverse_scale}, __NV_SATFINITE,
                                  kFormat == Float8Format::kE4M3 ? __NV_E4M3 : __NV_E5M2);
#else
  return Quantized(kFormat, a, inverse_scale) | uint32_t{Quantized(kFormat, b, inverse_scale)} << 8;
#endif
}

// Four of the eight bytes of a (the first four) and b, the i-th by the i-th four bits of `which`.
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

// Of a scale, which is a power of two.
TROUPE_DEVICE float InverseOf(float scale) { return std::bit_cast<float>(0x7F000000u - std::bit_cast<uint32_t>(scale)); }

// Of all threads of the block, on each. `shared`: f[33], as of BlockSum.
TROUPE_DEVICE float BlockLargest(float value, float* shared) {
  for (int lanes = kWarp / 2; lanes > 0; lanes /= 2) value = LargerMagnitude(value, ShuffleXor(value, lanes));
  if (Lane() == 0) shared[Warp()] = value;
  SyncBlock();
  if (Warp() == 0) {
    float of_warp = Lane() < kThreads / kWarp ? shared[Lane()] : 0.0f;
    for (int lanes = kWarp / 2; lanes > 0; lanes /= 2) of_warp = LargerMagnitude(of_warp, ShuffleXor(of_warp, lanes));
    if (Lane() == 0) shared[kWarp] = of_warp;
  }
  SyncBlock();
  return shared[kWarp];
}

// 0 where there is no history yet.
TROUPE_DEVICE float LargestOf(const float* history) {
  float largest = 0;
  if (history == nullptr) return largest;
  for (int i = 0; i < model::kAmaxSteps; ++i) largest = LargerMagnitude(largest, history[i]);
  return largest;
}

// Of a value that is there, as it lies.
TROUPE_KERNEL_OF(kThreads, 4) void ValueAmaxKernel(QuantizeLaunchArgs args) {
  TROUPE_SHARED float shared[kWarp + 1];
  if (LargestOf(args.quantize.history) > 0) return;
  const auto* x = static_cast<const BFloat16*>(args.quantize.x);
  const int64_t count = args.quantize.rows * args.quantize.columns;
  const int64_t stride = int64_t{args.amax_blocks} * kThreads * kAcross;
  int64_t i = (int64_t{BlockIndex().x} * kThreads + ThreadIndex()) * kAcross;
  uint32_t most = 0;
  if (args.source_packs) {
    constexpr int kAtOnce = 4;  // so that enough reads are under way
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
      for (int64_t k = i; k < count && k < i + kAcross; ++k) most = Larger(most, x[k].bits & 0x7FFFu);
    }
  }
  const float amax = BlockLargest(NumberOf(most), shared);
  if (ThreadIndex() == 0) args.quantize.partial[BlockIndex().x] = amax;
}

template <typename Source>
TROUPE_DEVICE TilePlace PlaceOf(const QuantizeLaunchArgs& args, int tile) {
  const int first_row = tile / args.tiles_across * kTile, first_column = tile % args.tiles_across * kTile;
  const int64_t rows = args.quantize.rows - first_row;
  const int64_t columns = args.quantize.columns / Source::kHalves - first_column;
  return {first_row, first_column, static_cast<int>(rows < kTile ? rows : kTile),
          static_cast<int>(columns < kTile ? columns : kTile)};
}

// Of a value that is made: made here, and again where it is quantised.
template <typename Source>
TROUPE_KERNEL_OF(kThreads, 4) void SourceAmaxKernel(QuantizeLaunchArgs args) {
  TROUPE_SHARED float shared[kWarp + 1];
  if (LargestOf(args.quantize.history) > 0) return;
  uint32_t most = 0;
  for (int tile = static_cast<int>(BlockIndex().x); tile < args.tiles; tile += args.amax_blocks) {
    MakeTile<Source>(args.quantize, PlaceOf<Source>(args, tile), args.source_packs, [&](int, const auto& made) {
      TROUPE_UNROLL
      for (const Neighbours& row : made) most = Larger(most, LargestOf(row));
    });
  }
  const float amax = BlockLargest(NumberOf(most), shared);
  if (ThreadIndex() == 0) args.quantize.partial[BlockIndex().x] = amax;
}

// Where the codes of column `column` of a tile lie turned round, those of four rows in a word: a line of its own, in whose
// words groups of columns differ, so that neither who writes nor who reads meets a bank twice.
constexpr int kWordsOfLine = kTile / 4;
TROUPE_DEVICE int TurnedWord(int column, int word) { return column * kWordsOfLine + (word ^ column / kAcross * 2); }

// The first `count` of N codes, of which words have four each.
template <int N>
TROUPE_DEVICE void StoreCodes(uint8_t* to, int count, bool packs, const uint32_t (&words)[N / 4]) {
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

// `kLines`: scales of 1 x 128 elements, so that the two forms have codes of their own; else one in the tile, or in all.
template <bool kLines>
struct TileShared {
  static constexpr int kWarps = kThreads / kWarp;
  Pack<uint32_t, 4> turned[kTile * kWordsOfLine / 4];
  uint32_t most_of_lines[kLines ? (1 + kWarps) * kTile : 1];  // of rows, and of columns in each warp's rows
  float of_lines[kLines ? 2 * kTile : 1];                    // inverse scales of rows, and of columns
  float largest[kWarp + 1];
};

// Of all of the value; what delayed scaling goes by where there is a history, alike in all threads.
template <Float8Format kFormat>
TROUPE_DEVICE float WholeScale(const QuantizeLaunchArgs& args, float* shared) {
  if (const float of_steps = LargestOf(args.quantize.history); of_steps > 0) return DelayedScaleOf(kFormat, of_steps);
  const int thread = static_cast<int>(ThreadIndex());
  return ScaleOf(kFormat, BlockLargest(thread < args.amax_blocks ? args.quantize.partial[thread] : 0.0f, shared));
}

// One tile, of which the thread has x. inverse: of the scale of all, where there is one; partial: the place of its largest
// magnitude, where that is asked for.
template <Float8Format kFormat, bool kLines>
TROUPE_DEVICE void QuantizeTile(const QuantizeLaunchArgs& args, const TilePlace& place, float inverse, int partial,
                                Neighbours (&x)[kRowsOfThread], TileShared<kLines>& shared) {
  const QuantizeArgs& q = args.quantize;
  const int64_t first_row = place.first_row, first_column = place.first_column;
  const int rows = place.rows, columns = place.columns;
  const int64_t blocks_down = (q.rows + kTile - 1) / kTile, block_row = first_row / kTile;
  const int64_t blocks_across = (q.columns + kTile - 1) / kTile, block_column = first_column / kTile;
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
    TROUPE_UNROLL
    for (int i = 0; i < kRowsOfThread; ++i) {
      // Threads of one row are half a warp.
      for (int lanes = kThreadsAcross / 2; lanes > 0; lanes /= 2) {
        most_of_rows[i] = Larger(most_of_rows[i], ShuffleXor(most_of_rows[i], lanes));
      }
      if (column == 0) shared.most_of_lines[row_of(i)] = most_of_rows[i];
    }
    TROUPE_UNROLL
    for (int k = 0; k < kAcross; ++k) {
      uint32_t most_of_column = 0;
      TROUPE_UNROLL
      for (int i = 0; i < kRowsOfThread; ++i) {
        const Pair pair = x[i].values[k / 2];
        most_of_column = Larger(most_of_column, k % 2 == 0 ? FirstMagnitude(pair) : SecondMagnitude(pair));
      }
      most_of_column = Larger(most_of_column, ShuffleXor(most_of_column, kThreadsAcross));
      if (Lane() < kThreadsAcross) shared.most_of_lines[(1 + Warp()) * kTile + column + k] = most_of_column;
    }
    SyncBlock();
    // A thread for each row, and for each column.
    const bool is_row = thread < kTile;
    const int line = thread % kTile;
    uint32_t most_of_line = is_row ? shared.most_of_lines[line] : 0;
    for (int warp = 0; warp < TileShared<kLines>::kWarps && !is_row; ++warp) {
      most_of_line = Larger(most_of_line, shared.most_of_lines[(1 + warp) * kTile + line]);
    }
    const float scale = ScaleOf(kFormat, NumberOf(most_of_line));
    shared.of_lines[thread] = InverseOf(scale);
    float* const scales = is_row ? q.rows_scale : q.columns_scale;
    if (scales != nullptr && line < (is_row ? rows : columns)) {
      scales[is_row ? (first_row + line) * blocks_across + block_column : (first_column + line) * blocks_down + block_row] =
          scale;
    }
    SyncBlock();
  } else if (of_square) {
    const float scale = ScaleOf(kFormat, largest);
    if (thread == 0 && q.rows_scale != nullptr) q.rows_scale[block_row * blocks_across + block_column] = scale;
    if (thread == 0 && q.columns_scale != nullptr) q.columns_scale[block_column * blocks_down + block_row] = scale;
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
    uint32_t codes[kDown][kAcross / 4];  // of rows
    TROUPE_UNROLL
    for (int i = 0; i < kDown; ++i) {
      const int at = part * kDown + i;
      const float of_row = kLines ? shared.of_lines[row_of(at)] : inverse;
      TROUPE_UNROLL
      for (int w = 0; w < kAcross / 4; ++w) {
        const Pair left = x[at].values[2 * w], right = x[at].values[2 * w + 1];
        codes[i][w] = TwoCodes<kFormat>(First(left), Second(left), of_row) |
                      TwoCodes<kFormat>(First(right), Second(right), of_row) << 16;
      }
      if (q.rows_form != nullptr && row_of(at) < rows && column < columns) {
        StoreCodes<kAcross>(q.rows_form + (first_row + row_of(at)) * q.columns + first_column + column,
                            columns - column, args.rows_pack, codes[i]);
      }
    }
    if (q.columns_form == nullptr) continue;
    const auto turn = [&](int k, uint32_t word) {
      const int at = TurnedWord(column + k, row_of(part * kDown) / 4);
      shared.turned[at / 4].values[at % 4] = word;
    };
    if constexpr (kLines) {
      TROUPE_UNROLL
      for (int k = 0; k < kAcross; ++k) {
        const float of_column = shared.of_lines[kTile + column + k];
        const auto value = [&](int i) {
          const Pair pair = x[part * kDown + i].values[k / 2];
          return k % 2 == 0 ? First(pair) : Second(pair);
        };
        turn(k, TwoCodes<kFormat>(value(0), value(1), of_column) | TwoCodes<kFormat>(value(2), value(3), of_column) << 16);
      }
    } else {
      TROUPE_UNROLL
      for (int w = 0; w < kAcross / 4; ++w) {
        const uint32_t upper[2] = {BytesOf(codes[0][w], codes[1][w], 0x5140), BytesOf(codes[0][w], codes[1][w], 0x7362)};
        const uint32_t lower[2] = {BytesOf(codes[2][w], codes[3][w], 0x5140), BytesOf(codes[2][w], codes[3][w], 0x7362)};
        TROUPE_UNROLL
        for (int k = 0; k < 4; ++k) turn(4 * w + k, BytesOf(upper[k / 2], lower[k / 2], k % 2 == 0 ? 0x5410 : 0x7632));
      }
    }
  }
  if (q.columns_form == nullptr) return;
  SyncBlock();
  for (int i = thread; i < kTile * kTile / 16; i += kThreads) {
    const int line = i / (kTile / 16), along = i % (kTile / 16) * 16;
    if (line >= columns || along >= rows) continue;
    const auto four = shared.turned[TurnedWord(line, along / 4) / 4];
    const bool swapped = line / kAcross % 2 != 0;
    const uint32_t words[4] = {swapped ? four.values[2] : four.values[0], swapped ? four.values[3] : four.values[1],
                               swapped ? four.values[0] : four.values[2], swapped ? four.values[1] : four.values[3]};
    StoreCodes<16>(q.columns_form + (first_column + line) * q.rows + first_row + along, rows - along, args.columns_pack,
                   words);
  }
}

// What is made waits in DynamicShared() for its turn: Neighbours [kHalves, kRowsOfThread, kThreads], each thread's its own.
template <typename Source>
constexpr size_t kMadeBytes =
    std::is_same_v<Source, ValueSource> ? 0 : sizeof(Neighbours) * Source::kHalves * kRowsOfThread * kThreads;

template <Float8Format kFormat, bool kLines, typename Source>
TROUPE_KERNEL_OF(kThreads, kLines ? 2 : Source::kBlocks) void QuantizeKernel(QuantizeLaunchArgs args) {
  constexpr bool kMakes = kMadeBytes<Source> > 0;
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
      for (int half = 0; half < Source::kHalves; ++half) made_rows[(half * kRowsOfThread + i) * kThreads] = made[half];
    });
  } else {
    LoadTile(q, place, args.source_packs, x);
  }
  float inverse = 0;
  if (!kLines && q.block_rows == 0) {
    const float scale = WholeScale<kFormat>(args, shared.largest);
    if (block == 0 && thread == 0) *(q.rows_scale != nullptr ? q.rows_scale : q.columns_scale) = scale;
    inverse = InverseOf(scale);
  }
  TROUPE_UNROLL
  for (int half = 0; half < Source::kHalves; ++half) {
    if constexpr (kMakes) {
      if (half > 0) SyncBlock();  // else its codes meet those of the one before
      TROUPE_UNROLL
      for (int i = 0; i < kRowsOfThread; ++i) x[i] = made_rows[(half * kRowsOfThread + i) * kThreads];
    }
    QuantizeTile<kFormat, kLines>(args, place, inverse, args.amax_blocks + block * Source::kHalves + half, x, shared);
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

// Whether a block has a tile in each half of what SwiGLU's gradient makes: with scales of blocks only where those tiles are
// blocks of the whole.
bool TilesHalves(const QuantizeArgs& args) {
  return args.source == QuantizeSource::kSwiGluGrad && (args.block_rows == 0 || args.columns / 2 % kTile == 0);
}

// Of so many halves of the value, each cut into tiles by itself.
int HalvesOf(const QuantizeArgs& args) { return TilesHalves(args) ? SwiGluGradSource::kHalves : 1; }
int64_t TilesOfHalf(const QuantizeArgs& args) { return Tiles(args.rows) * Tiles(args.columns / HalvesOf(args)); }

int64_t AmaxBlocks(const QuantizeArgs& args) {
  const bool is_value = args.source == QuantizeSource::kValue;
  constexpr int64_t kOfBlock = int64_t{kThreads} * 64;
  return std::clamp<int64_t>(is_value ? args.rows * args.columns / kOfBlock : TilesOfHalf(args), 1, kMostAmaxBlocks);
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

// What is launched of what a source makes.
struct Kernels {
  void (*amax)(QuantizeLaunchArgs);  // where one scale is of all
  void (*quantize)(QuantizeLaunchArgs);
  size_t shared_bytes;  // of the latter
};
template <Float8Format kFormat, typename Source>
Kernels KernelsOf(const QuantizeArgs& args, void (*amax)(QuantizeLaunchArgs)) {
  return {amax,
          args.block_rows == 1 ? &QuantizeKernel<kFormat, true, Source> : &QuantizeKernel<kFormat, false, Source>,
          kMadeBytes<Source>};
}
Kernels KernelsOf(const QuantizeArgs& args) {
  switch (args.source) {
    case QuantizeSource::kSwiGlu:
      return KernelsOf<Float8Format::kE4M3, SwiGluSource>(args, &SourceAmaxKernel<SwiGluSource>);
    case QuantizeSource::kSwiGluGrad:
      if (!TilesHalves(args)) {
        return {nullptr, &QuantizeKernel<Float8Format::kE5M2, true, SwiGluGradElements>, kMadeBytes<SwiGluGradElements>};
      }
      return KernelsOf<Float8Format::kE5M2, SwiGluGradSource>(args, &SourceAmaxKernel<SwiGluGradSource>);
    case QuantizeSource::kValue:
      break;
  }
  return args.e5m2 ? KernelsOf<Float8Format::kE5M2, ValueSource>(args, &ValueAmaxKernel)
                   : KernelsOf<Float8Format::kE4M3, ValueSource>(args, &ValueAmaxKernel);
}

}  // namespace

int64_t QuantizeScratchBytes(const QuantizeArgs& args) {
  return (AmaxBlocks(args) + TilesOfHalf(args) * HalvesOf(args)) * static_cast<int64_t>(sizeof(float));
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
    launches.push_back(MakeLaunch("quantize_amax", kernels.amax,
                                  {.blocks_x = static_cast<unsigned>(launch.amax_blocks), .threads = kThreads}, launch));
  }
  launches.push_back(MakeLaunch(
      "quantize", kernels.quantize,
      {.blocks_x = static_cast<unsigned>(tiles), .threads = kThreads, .shared_bytes = kernels.shared_bytes}, launch));
  if (args.amax != nullptr) {
    launches.push_back(MakeLaunch("quantize_finish", &QuantizeFinishKernel, {.threads = kThreads}, launch));
  }
  return launches;
}

}  // namespace troupe::kernels::cuda
