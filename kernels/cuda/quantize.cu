// Values in 8 bits, in tiles of kTile x kTile by a block each: read once for both forms. Largest magnitudes are maxima of bits,
// the same in any order.
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
constexpr int kStride = kTile + 2;  // of a tile's rows: rows and columns of it are read without meeting a bank twice
constexpr int kMostAmaxBlocks = kThreads;  // a thread each of those that read what they leave

struct QuantizeLaunchArgs {
  QuantizeArgs quantize;
  int32_t amax_blocks, tiles_across;
  bool x_packs, rows_pack, columns_pack;  // rows are read and written sixteen bytes at a time
};

TROUPE_DEVICE Float8Format FormatOf(bool e5m2) { return e5m2 ? Float8Format::kE5M2 : Float8Format::kE4M3; }

// As Quantized; where the device converts by itself, it does, to the same codes but the sign of NaN.
TROUPE_DEVICE uint8_t CodeOf(Float8Format format, float value, float inverse_scale) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  if (IsFiniteNumber(value)) {
    return __nv_cvt_float_to_fp8(value * inverse_scale, __NV_SATFINITE,
                                 format == Float8Format::kE4M3 ? __NV_E4M3 : __NV_E5M2);
  }
#endif
  return Quantized(format, value, inverse_scale);
}

// Of two neighbours, the first in the lower byte.
TROUPE_DEVICE uint16_t CodesOf(Float8Format format, float first, float second, float inverse_scale) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  if (IsFiniteNumber(first) && IsFiniteNumber(second)) {
    return __nv_cvt_float2_to_fp8x2({first * inverse_scale, second * inverse_scale}, __NV_SATFINITE,
                                    format == Float8Format::kE4M3 ? __NV_E4M3 : __NV_E5M2);
  }
#endif
  return static_cast<uint16_t>(CodeOf(format, first, inverse_scale) | CodeOf(format, second, inverse_scale) << 8);
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
  constexpr int kPieces = kPack<BFloat16>;
  float amax = 0;
  for (int64_t i = (int64_t{BlockIndex().x} * kThreads + ThreadIndex()) * kPieces; i < count;
       i += int64_t{args.amax_blocks} * kThreads * kPieces) {
    if (args.x_packs) {
      const auto pack = Pack<BFloat16, kPieces>::Load(x + i);
      TROUPE_UNROLL
      for (int k = 0; k < kPieces; ++k) amax = LargerMagnitude(amax, pack[k]);
    } else {
      for (int64_t k = i; k < count && k < i + kPieces; ++k) amax = LargerMagnitude(amax, Widen(x[k]));
    }
  }
  amax = BlockLargest(amax, shared);
  if (ThreadIndex() == 0) args.quantize.partial[BlockIndex().x] = amax;
}

// Codes of sixteen neighbours, `value(i)` the i-th, of which the first `count` are there.
template <typename Value>
TROUPE_DEVICE void StoreCodes(uint8_t* to, int count, bool packs, Float8Format format, float inverse_scale,
                              const Value& value) {
  if (packs && count >= 16) {
    Pack<uint16_t, 8> pairs;
    TROUPE_UNROLL
    for (int i = 0; i < 8; ++i) pairs.values[i] = CodesOf(format, value(2 * i), value(2 * i + 1), inverse_scale);
    pairs.Store(reinterpret_cast<uint16_t*>(to));
    return;
  }
  TROUPE_NO_UNROLL
  for (int i = 0; i < 16 && i < count; ++i) to[i] = CodeOf(format, value(i), inverse_scale);
}

TROUPE_KERNEL_OF(kThreads, 2) void QuantizeKernel(QuantizeLaunchArgs args) {
  TROUPE_SHARED BFloat16 tile[kTile * kStride];
  TROUPE_SHARED float amax[2 * kTile];  // of the tile's rows, and of its columns; then scales
  TROUPE_SHARED float shared[kWarp + 1];
  const QuantizeArgs& q = args.quantize;
  const Float8Format format = FormatOf(q.e5m2);
  const int64_t first_row = int64_t{BlockIndex().x} / args.tiles_across * kTile;
  const int64_t first_column = int64_t{BlockIndex().x} % args.tiles_across * kTile;
  const int rows = static_cast<int>(q.rows - first_row < kTile ? q.rows - first_row : kTile);
  const int columns = static_cast<int>(q.columns - first_column < kTile ? q.columns - first_column : kTile);
  const int thread = static_cast<int>(ThreadIndex());
  const BFloat16* x = static_cast<const BFloat16*>(q.x) + first_row * q.columns + first_column;

  const bool of_blocks = q.block_rows > 0, folds = q.amax != nullptr;
  float own = 0;  // of what this thread loads; of blocks, of a row or a column of the tile
  for (int i = thread; i < kTile * kTile / 8; i += kThreads) {
    const int row = i / (kTile / 8), column = i % (kTile / 8) * 8;
    BFloat16* const to = tile + row * kStride + column;
    const BFloat16* const from = x + row * q.columns + column;
    if (args.x_packs && row < rows && column < columns) {
      const auto pack = Pack<BFloat16, 8>::Load(from);
      TROUPE_UNROLL
      for (int k = 0; k < 8; ++k) {
        to[k] = pack.values[k];
        own = LargerMagnitude(own, pack[k]);
      }
    } else {
      TROUPE_NO_UNROLL
      for (int k = 0; k < 8; ++k) {
        to[k] = row < rows && column + k < columns ? from[k] : BFloat16{};
        own = LargerMagnitude(own, Widen(to[k]));
      }
    }
  }
  SyncBlock();

  if (of_blocks) {
    own = 0;
    const BFloat16* const line = thread < kTile ? tile + thread * kStride : tile + (thread - kTile);
    const int step = thread < kTile ? 1 : kStride;
    TROUPE_NO_UNROLL
    for (int i = 0; i < kTile; ++i) own = LargerMagnitude(own, Widen(line[i * step]));
  }
  if (folds || q.block_rows > 1) {
    const float all = BlockLargest(own, shared);
    if (folds && thread == 0) q.partial[args.amax_blocks + BlockIndex().x] = all;
    if (q.block_rows > 1) own = all;
  }
  float scale = 0;
  if (of_blocks) {
    scale = ScaleOf(format, own);
  } else if (const float of_steps = LargestOf(q.history); of_steps > 0) {  // alike in all threads
    scale = DelayedScaleOf(format, of_steps);
  } else {
    SyncBlock();
    scale = ScaleOf(format, BlockLargest(thread < args.amax_blocks ? q.partial[thread] : 0.0f, shared));
  }
  amax[thread] = 1.0f / scale;
  if (of_blocks) {
    const bool is_row = thread < kTile;
    const int line = is_row ? thread : thread - kTile;
    float* const scales = is_row ? q.rows_scale : q.columns_scale;
    if (scales != nullptr && line % q.block_rows == 0 && line < (is_row ? rows : columns)) {
      const int64_t at = (is_row ? first_row : first_column) + line;
      const int64_t width = is_row ? q.columns : q.rows;
      scales[at / q.block_rows * ((width + kTile - 1) / kTile) + (is_row ? first_column : first_row) / kTile] = scale;
    }
  } else if (BlockIndex().x == 0 && thread == 0) {
    *(q.rows_scale != nullptr ? q.rows_scale : q.columns_scale) = scale;
  }
  SyncBlock();

  for (int i = thread; i < kTile * kTile / 16; i += kThreads) {
    const int line = i / (kTile / 16), along = i % (kTile / 16) * 16;
    if (q.rows_form != nullptr && line < rows && along < columns) {
      StoreCodes(q.rows_form + (first_row + line) * q.columns + first_column + along, columns - along, args.rows_pack,
                 format, amax[line], [&](int k) { return Widen(tile[line * kStride + along + k]); });
    }
    if (q.columns_form != nullptr && line < columns && along < rows) {
      StoreCodes(q.columns_form + (first_column + line) * q.rows + first_row + along, rows - along, args.columns_pack,
                 format, amax[kTile + line], [&](int k) { return Widen(tile[(along + k) * kStride + line]); });
    }
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
  launches.push_back(MakeLaunch("quantize", &QuantizeKernel, {.blocks_x = blocks, .threads = kThreads}, launch));
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
