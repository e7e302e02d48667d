// Dequantisation of FP8 tensors to bfloat16, conversion of their scales to a library's layout, and
// the amax histories of delayed scaling.
#include <cstdint>

#include "kernels/backend/update_decision.h"
#include "kernels/cuda/device_code/numbers.h"
#include "kernels/cuda/device_code/shapes.h"
#include "kernels/cuda/kernels/quantize.h"
#include "kernels/numerics/bfloat16.h"
#include "kernels/numerics/float8.h"
#include "model/program/float8.h"

namespace troupe::kernels::cuda {
namespace {

constexpr int kBlock = static_cast<int>(model::kFloat8Block);
constexpr int kThreads = 256;

TROUPE_DEVICE Float8Format FormatOf(bool e5m2) {
  return e5m2 ? Float8Format::kE5M2 : Float8Format::kE4M3;
}

// Dequantises one tile of an operand to bfloat16, transposed if requested.
constexpr int kTransposed = 64;

TROUPE_KERNEL_OF(kThreads, 4) void DequantizeKernel(DequantizeArgs args) {
  TROUPE_SHARED BFloat16 tile[kTransposed * (kTransposed + 2)];
  const int64_t across = (args.columns + kTransposed - 1) / kTransposed;
  const int64_t first_row = int64_t{BlockIndex().x} / across * kTransposed;
  const int64_t first_column = int64_t{BlockIndex().x} % across * kTransposed;
  const int64_t scales_across = (args.columns + kBlock - 1) / kBlock;
  auto* const y = static_cast<BFloat16*>(args.y);
  for (int i = static_cast<int>(ThreadIndex()); i < kTransposed * kTransposed; i += kThreads) {
    const int64_t row = first_row + i / kTransposed, column = first_column + i % kTransposed;
    if (row >= args.rows || column >= args.columns) continue;
    const float scale =
        args.scale[args.block_rows == 0 ? 0
                                        : row / args.block_rows * scales_across + column / kBlock];
    // Exact: an FP8 number times a power of two.
    const auto number = Narrow<BFloat16>(
        FromFloat8(FormatOf(args.e5m2), args.q[row * args.columns + column]) * scale);
    if (args.transpose) {
      tile[i / kTransposed * (kTransposed + 2) + i % kTransposed] = number;
    } else {
      y[row * args.columns + column] = number;
    }
  }
  if (!args.transpose) return;
  SyncBlock();
  for (int i = static_cast<int>(ThreadIndex()); i < kTransposed * kTransposed; i += kThreads) {
    const int64_t column = first_column + i / kTransposed, row = first_row + i % kTransposed;
    if (row < args.rows && column < args.columns) {
      y[column * args.rows + row] = tile[i % kTransposed * (kTransposed + 2) + i / kTransposed];
    }
  }
}

struct LibraryScalesArgs {
  const float* from;  // f[lines, across]
  float* to;
  int64_t lines, across, padded;  // padded: width of an output line; 0: transposed output
};

TROUPE_KERNEL void LibraryScalesKernel(LibraryScalesArgs args) {
  const int64_t i = int64_t{BlockIndex().x} * kThreads + ThreadIndex();
  if (args.padded > 0) {
    const int64_t line = i / args.padded, column = i % args.padded;
    if (line < args.lines)
      args.to[i] = column < args.across ? args.from[line * args.across + column] : 0.0f;
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

}  // namespace

KernelLaunch Dequantize(const DequantizeArgs& args) {
  const auto blocks =
      static_cast<unsigned>(Tiles(args.rows, kTransposed) * Tiles(args.columns, kTransposed));
  return MakeLaunch("dequantize", &DequantizeKernel, {.blocks_x = blocks, .threads = kThreads},
                    args);
}

int64_t LibraryScaleCount(const DequantizeArgs& operand) {
  const int64_t across = Tiles(operand.columns, kBlock);
  return operand.block_rows == 1 ? operand.rows * across
                                 : Tiles(operand.rows, kBlock) * Tiles(across, 4) * 4;
}

KernelLaunch LibraryScales(const DequantizeArgs& operand, float* to) {
  const int64_t across = Tiles(operand.columns, kBlock), count = LibraryScaleCount(operand);
  const bool turns = operand.block_rows == 1;
  return MakeLaunch(
      "library_scales", &LibraryScalesKernel, ThreadsFor(count, kThreads),
      LibraryScalesArgs{operand.scale, to, turns ? operand.rows : Tiles(operand.rows, kBlock),
                        across, turns ? 0 : Tiles(across, 4) * 4});
}

KernelLaunch AmaxHistory(const AmaxHistoryEntry* entries, int64_t count, const double* control) {
  return MakeLaunch("amax_history", &AmaxHistoryKernel,
                    {.blocks_x = static_cast<unsigned>(count), .threads = kWarp},
                    AmaxHistoryArgs{entries, control});
}

}  // namespace troupe::kernels::cuda
