// Values in 8 bits, in tiles of kTile x kTile by a block each: read once, into registers, for both forms; only codes of the
// transposed one go through shared memory. Largest magnitudes are maxima of bits, the same in any order.
#include "kernels/cuda/quantize.h"

#include <algorithm>
#include <cstdint>

#ifdef __CUDACC__
#include <cuda_fp8.h>
#endif

#include "kernels/bfloat16.h"
#include "kernels/cuda/numbers.h"
#include "kernels/cuda/shapes.h"
#include "kernels/float8.h"
#include "kernels/update_decision.h"
#include "model/program/float8.h"

namespace troupe::kernels::cuda {
namespace {

constexpr int kTile = static_cast<int>(model::kFloat8Block);
constexpr int kThreads = 256;
constexpr int kMostAmaxBlocks = kThreads;  // a thread each of those that read what they leave

// Of a tile a thread has kAcross neighbours of each of kRowsOfThread rows, in kParts parts of kDown neighbours.
constexpr int kAcross = 8, kDown = 4, kParts = 2;
constexpr int kPairs = kAcross / 2;
constexpr int kRowsOfThread = kDown * kParts;
constexpr int kThreadsAcross = kTile / kAcross;
static_assert(kThreads / kThreadsAcross * kRowsOfThread == kTile);

struct QuantizeLaunchArgs {
  QuantizeArgs quantize;
  int32_t amax_blocks, tiles_across;
  bool x_packs, rows_pack, columns_pack;  // rows are read and written sixteen bytes at a time
};

TROUPE_DEVICE Float8Format FormatOf(bool e5m2) { return e5m2 ? Float8Format::kE5M2 : Float8Format::kE4M3; }

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

// Two neighbours of bfloat16 in a word, the first in its low half.
using Pair = uint32_t;
TROUPE_DEVICE float First(Pair pair) { return std::bit_cast<float>(pair << 16); }
TROUPE_DEVICE float Second(Pair pair) { return std::bit_cast<float>(pair & 0xFFFF0000u); }

// REQUIRES: aligned to their size.
TROUPE_DEVICE Pack<Pair, kPairs> PairsAt(const BFloat16* from) {
  return std::bit_cast<Pack<Pair, kPairs>>(Pack<BFloat16, kAcross>::Load(from));
}

// Magnitudes of bfloat16 as whole numbers, which are in their order.
constexpr uint32_t kInfinite = 0x7F80;
TROUPE_DEVICE uint32_t Larger(uint32_t a, uint32_t b) { return a > b ? a : b; }
TROUPE_DEVICE uint32_t FirstMagnitude(Pair pair) { return pair & 0x7FFFu; }
TROUPE_DEVICE uint32_t SecondMagnitude(Pair pair) { return pair >> 16 & 0x7FFFu; }
TROUPE_DEVICE uint32_t LargestOf(const Pack<Pair, kPairs>& pairs) {
  uint32_t largest = 0;
  TROUPE_UNROLL
  for (const Pair pair : pairs.values) largest = Larger(largest, Larger(FirstMagnitude(pair), SecondMagnitude(pair)));
  return largest;
}
TROUPE_DEVICE float NumberOf(uint32_t magnitude) { return std::bit_cast<float>(magnitude << 16); }
// Infinities become NaN.
TROUPE_DEVICE Pair WithoutInfinities(Pair pair) {
  return pair | (FirstMagnitude(pair) >= kInfinite ? 0x40u : 0u) | (SecondMagnitude(pair) >= kInfinite ? 0x400000u : 0u);
}

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

TROUPE_KERNEL_OF(kThreads, 4) void QuantizeAmaxKernel(QuantizeLaunchArgs args) {
  TROUPE_SHARED float shared[kWarp + 1];
  if (LargestOf(args.quantize.history) > 0) return;
  const auto* x = static_cast<const BFloat16*>(args.quantize.x);
  const int64_t count = args.quantize.rows * args.quantize.columns;
  const int64_t stride = int64_t{args.amax_blocks} * kThreads * kAcross;
  int64_t i = (int64_t{BlockIndex().x} * kThreads + ThreadIndex()) * kAcross;
  uint32_t most = 0;
  if (args.x_packs) {
    constexpr int kAtOnce = 4;  // so that enough reads are under way
    for (; i + (kAtOnce - 1) * stride < count; i += kAtOnce * stride) {
      Pack<Pair, kPairs> packs[kAtOnce];
      TROUPE_UNROLL
      for (int k = 0; k < kAtOnce; ++k) packs[k] = PairsAt(x + i + k * stride);
      TROUPE_UNROLL
      for (int k = 0; k < kAtOnce; ++k) most = Larger(most, LargestOf(packs[k]));
    }
    for (; i < count; i += stride) most = Larger(most, LargestOf(PairsAt(x + i)));
  } else {
    for (; i < count; i += stride) {
      for (int64_t k = i; k < count && k < i + kAcross; ++k) most = Larger(most, x[k].bits & 0x7FFFu);
    }
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
template <Float8Format kFormat, bool kLines>
TROUPE_KERNEL_OF(kThreads, kLines ? 2 : 3) void QuantizeKernel(QuantizeLaunchArgs args) {
  constexpr int kWarps = kThreads / kWarp;
  TROUPE_SHARED Pack<uint32_t, 4> turned[kTile * kWordsOfLine / 4];
  TROUPE_SHARED uint32_t most_of_lines[kLines ? (1 + kWarps) * kTile : 1];  // of rows, and of columns in each warp's rows
  TROUPE_SHARED float of_lines[kLines ? 2 * kTile : 1];                    // inverse scales of rows, and of columns
  TROUPE_SHARED float shared[kWarp + 1];
  const QuantizeArgs& q = args.quantize;
  const int64_t tiles_down = (q.rows + kTile - 1) / kTile, tile_row = int64_t{BlockIndex().x} / args.tiles_across;
  const int64_t tile_column = int64_t{BlockIndex().x} % args.tiles_across;
  const int64_t first_row = tile_row * kTile, first_column = tile_column * kTile;
  const int rows = static_cast<int>(q.rows - first_row < kTile ? q.rows - first_row : kTile);
  const int columns = static_cast<int>(q.columns - first_column < kTile ? q.columns - first_column : kTile);
  const int thread = static_cast<int>(ThreadIndex());
  const int column = thread % kThreadsAcross * kAcross;
  const auto row_of = [=](int i) { return i / kDown * (kTile / kParts) + thread / kThreadsAcross * kDown + i % kDown; };

  // What the thread has of the tile, zero behind its ends.
  Pack<Pair, kPairs> x[kRowsOfThread];
  const auto from_row = [&](int i) {
    return static_cast<const BFloat16*>(q.x) + (first_row + row_of(i)) * q.columns + first_column + column;
  };
  if (args.x_packs) {
    TROUPE_UNROLL
    for (int i = 0; i < kRowsOfThread; ++i) {
      x[i] = {};
      if (row_of(i) < rows && column < columns) x[i] = PairsAt(from_row(i));
    }
  } else {
    TROUPE_UNROLL
    for (int i = 0; i < kRowsOfThread; ++i) {
      const BFloat16* const from = from_row(i);
      const int count = row_of(i) < rows ? columns - column : 0;
      TROUPE_UNROLL
      for (int p = 0; p < kPairs; ++p) {
        const Pair first = 2 * p < count ? from[2 * p].bits : 0u, second = 2 * p + 1 < count ? from[2 * p + 1].bits : 0u;
        x[i].values[p] = first | second << 16;
      }
      SyncWarp();  // else elements of all rows are read before they are paired, into more registers than there are
    }
  }

  uint32_t most_of_rows[kRowsOfThread], most = 0;
  TROUPE_UNROLL
  for (int i = 0; i < kRowsOfThread; ++i) {
    most_of_rows[i] = LargestOf(x[i]);
    most = Larger(most, most_of_rows[i]);
  }
  float largest = NumberOf(most);
  const bool of_square = q.block_rows > 0 && !kLines, folds = q.amax != nullptr;
  if (of_square || folds) largest = BlockLargest(largest, shared);
  if (folds && thread == 0) q.partial[args.amax_blocks + BlockIndex().x] = largest;

  float inverse = 0;  // of all
  if constexpr (kLines) {
    TROUPE_UNROLL
    for (int i = 0; i < kRowsOfThread; ++i) {
      // Threads of one row are half a warp.
      for (int lanes = kThreadsAcross / 2; lanes > 0; lanes /= 2) {
        most_of_rows[i] = Larger(most_of_rows[i], ShuffleXor(most_of_rows[i], lanes));
      }
      if (column == 0) most_of_lines[row_of(i)] = most_of_rows[i];
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
      if (Lane() < kThreadsAcross) most_of_lines[(1 + Warp()) * kTile + column + k] = most_of_column;
    }
    SyncBlock();
    // A thread for each row, and for each column.
    const bool is_row = thread < kTile;
    const int line = thread % kTile;
    uint32_t most_of_line = is_row ? most_of_lines[line] : 0;
    for (int warp = 0; warp < kWarps && !is_row; ++warp) {
      most_of_line = Larger(most_of_line, most_of_lines[(1 + warp) * kTile + line]);
    }
    const float scale = ScaleOf(kFormat, NumberOf(most_of_line));
    of_lines[thread] = InverseOf(scale);
    float* const scales = is_row ? q.rows_scale : q.columns_scale;
    if (scales != nullptr && line < (is_row ? rows : columns)) {
      scales[is_row ? (first_row + line) * args.tiles_across + tile_column : (first_column + line) * tiles_down + tile_row] =
          scale;
    }
    SyncBlock();
  } else {
    float scale = 0;
    if (of_square) {
      scale = ScaleOf(kFormat, largest);
      if (thread == 0 && q.rows_scale != nullptr) q.rows_scale[tile_row * args.tiles_across + tile_column] = scale;
      if (thread == 0 && q.columns_scale != nullptr) q.columns_scale[tile_column * tiles_down + tile_row] = scale;
    } else {
      if (const float of_steps = LargestOf(q.history); of_steps > 0) {  // alike in all threads
        scale = DelayedScaleOf(kFormat, of_steps);
      } else {
        SyncBlock();
        scale = ScaleOf(kFormat, BlockLargest(thread < args.amax_blocks ? q.partial[thread] : 0.0f, shared));
      }
      if (BlockIndex().x == 0 && thread == 0) *(q.rows_scale != nullptr ? q.rows_scale : q.columns_scale) = scale;
    }
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
      const float of_row = kLines ? of_lines[row_of(at)] : inverse;
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
      turned[at / 4].values[at % 4] = word;
    };
    if constexpr (kLines) {
      TROUPE_UNROLL
      for (int k = 0; k < kAcross; ++k) {
        const float of_column = of_lines[kTile + column + k];
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
    const auto four = turned[TurnedWord(line, along / 4) / 4];
    const bool swapped = line / kAcross % 2 != 0;
    const uint32_t words[4] = {swapped ? four.values[2] : four.values[0], swapped ? four.values[3] : four.values[1],
                               swapped ? four.values[0] : four.values[2], swapped ? four.values[1] : four.values[3]};
    StoreCodes<16>(q.columns_form + (first_column + line) * q.rows + first_row + along, rows - along, args.columns_pack,
                   words);
  }
}

TROUPE_KERNEL_OF(kThreads, 1) void QuantizeFinishKernel(QuantizeLaunchArgs args) {
  TROUPE_SHARED float shared[kWarp + 1];
  const QuantizeArgs& q = args.quantize;
  const int64_t tiles = (q.rows + kTile - 1) / kTile * args.tiles_across;
  float largest = 0;
  for (int64_t i = ThreadIndex(); i < tiles; i += kThreads) {
    largest = LargerMagnitude(largest, q.partial[args.amax_blocks + i]);
  }
  largest = BlockLargest(largest, shared);
  if (ThreadIndex() == 0) *q.amax = q.accumulate ? LargerMagnitude(*q.amax, largest) : largest;
}

// A tile of a factor: its numbers as bfloat16, turned round where asked for.
constexpr int kTurned = 64;

TROUPE_KERNEL_OF(kThreads, 4) void DequantizeKernel(DequantizeArgs args) {
  TROUPE_SHARED BFloat16 tile[kTurned * (kTurned + 2)];
  const int64_t across = (args.columns + kTurned - 1) / kTurned;
  const int64_t first_row = int64_t{BlockIndex().x} / across * kTurned;
  const int64_t first_column = int64_t{BlockIndex().x} % across * kTurned;
  const int64_t scales_across = (args.columns + kTile - 1) / kTile;
  auto* const y = static_cast<BFloat16*>(args.y);
  for (int i = static_cast<int>(ThreadIndex()); i < kTurned * kTurned; i += kThreads) {
    const int64_t row = first_row + i / kTurned, column = first_column + i % kTurned;
    if (row >= args.rows || column >= args.columns) continue;
    const float scale = args.scale[args.block_rows == 0 ? 0 : row / args.block_rows * scales_across + column / kTile];
    // Exact: a number of 8 bits times a power of two.
    const auto number = Narrow<BFloat16>(FromFloat8(FormatOf(args.e5m2), args.q[row * args.columns + column]) * scale);
    if (args.transpose) {
      tile[i / kTurned * (kTurned + 2) + i % kTurned] = number;
    } else {
      y[row * args.columns + column] = number;
    }
  }
  if (!args.transpose) return;
  SyncBlock();
  for (int i = static_cast<int>(ThreadIndex()); i < kTurned * kTurned; i += kThreads) {
    const int64_t column = first_column + i / kTurned, row = first_row + i % kTurned;
    if (row < args.rows && column < args.columns) {
      y[column * args.rows + row] = tile[i % kTurned * (kTurned + 2) + i / kTurned];
    }
  }
}

struct LibraryScalesArgs {
  const float* from;  // f[lines, across]
  float* to;
  int64_t lines, across, padded;  // padded: of a line of what is made, which stays in lines; 0: it is turned round
};

TROUPE_KERNEL void LibraryScalesKernel(LibraryScalesArgs args) {
  const int64_t i = int64_t{BlockIndex().x} * kThreads + ThreadIndex();
  if (args.padded > 0) {
    const int64_t line = i / args.padded, column = i % args.padded;
    if (line < args.lines) args.to[i] = column < args.across ? args.from[line * args.across + column] : 0.0f;
  } else if (i < args.lines * args.across) {
    args.to[i] = args.from[i % args.lines * args.across + i / args.lines];
  }
}

struct AmaxHistoryArgs {
  const AmaxHistoryEntry* entries;
  const double* control;
};

TROUPE_KERNEL void AmaxHistoryKernel(AmaxHistoryArgs args) {
  if (!DecideUpdate(args.control, 0).apply) return;
  const AmaxHistoryEntry entry = args.entries[BlockIndex().x];
  float moved = 0;
  if (Lane() < model::kAmaxSteps) moved = Lane() == 0 ? *entry.amax : entry.history[Lane() - 1];
  SyncWarp();
  if (Lane() < model::kAmaxSteps) entry.history[Lane()] = moved;
}

int64_t Tiles(int64_t extent, int64_t size) { return (extent + size - 1) / size; }

int64_t AmaxBlocks(const QuantizeArgs& args) {
  constexpr int64_t kOfBlock = int64_t{kThreads} * 64;
  return std::clamp<int64_t>(args.rows * args.columns / kOfBlock, 1, kMostAmaxBlocks);
}

}  // namespace

int64_t QuantizeScratchBytes(const QuantizeArgs& args) {
  const int64_t tiles = Tiles(args.rows, kTile) * Tiles(args.columns, kTile);
  return (AmaxBlocks(args) + tiles) * static_cast<int64_t>(sizeof(float));
}

std::vector<KernelLaunch> Quantize(const QuantizeArgs& args) {
  const QuantizeLaunchArgs launch = {args,
                                     static_cast<int32_t>(AmaxBlocks(args)),
                                     static_cast<int32_t>(Tiles(args.columns, kTile)),
                                     Packs(args.columns, sizeof(BFloat16), {args.x}),
                                     Packs(args.columns, 1, {args.rows_form}),
                                     Packs(args.rows, 1, {args.columns_form})};
  const auto blocks = static_cast<unsigned>(Tiles(args.rows, kTile) * Tiles(args.columns, kTile));
  std::vector<KernelLaunch> launches;
  if (args.block_rows == 0) {
    launches.push_back(MakeLaunch("quantize_amax", &QuantizeAmaxKernel,
                                  {.blocks_x = static_cast<unsigned>(launch.amax_blocks), .threads = kThreads},
                                  launch));
  }
  const auto quantize = [&](auto kernel) {
    launches.push_back(MakeLaunch("quantize", kernel, {.blocks_x = blocks, .threads = kThreads}, launch));
  };
  if (args.block_rows == 1) {
    quantize(args.e5m2 ? &QuantizeKernel<Float8Format::kE5M2, true> : &QuantizeKernel<Float8Format::kE4M3, true>);
  } else {
    quantize(args.e5m2 ? &QuantizeKernel<Float8Format::kE5M2, false> : &QuantizeKernel<Float8Format::kE4M3, false>);
  }
  if (args.amax != nullptr) {
    launches.push_back(MakeLaunch("quantize_finish", &QuantizeFinishKernel, {.threads = kThreads}, launch));
  }
  return launches;
}

KernelLaunch Dequantize(const DequantizeArgs& args) {
  const auto blocks = static_cast<unsigned>(Tiles(args.rows, kTurned) * Tiles(args.columns, kTurned));
  return MakeLaunch("dequantize", &DequantizeKernel, {.blocks_x = blocks, .threads = kThreads}, args);
}

int64_t LibraryScaleCount(const DequantizeArgs& factor) {
  const int64_t across = Tiles(factor.columns, kTile);
  return factor.block_rows == 1 ? factor.rows * across : Tiles(factor.rows, kTile) * Tiles(across, 4) * 4;
}

KernelLaunch LibraryScales(const DequantizeArgs& factor, float* to) {
  const int64_t across = Tiles(factor.columns, kTile), count = LibraryScaleCount(factor);
  const bool turns = factor.block_rows == 1;
  return MakeLaunch("library_scales", &LibraryScalesKernel, ThreadsFor(count, kThreads),
                    LibraryScalesArgs{factor.scale, to, turns ? factor.rows : Tiles(factor.rows, kTile), across,
                                      turns ? 0 : Tiles(across, 4) * 4});
}

KernelLaunch AmaxHistory(const AmaxHistoryEntry* entries, int64_t count, const double* control) {
  return MakeLaunch("amax_history", &AmaxHistoryKernel,
                    {.blocks_x = static_cast<unsigned>(count), .threads = kWarp}, AmaxHistoryArgs{entries, control});
}

}  // namespace troupe::kernels::cuda
