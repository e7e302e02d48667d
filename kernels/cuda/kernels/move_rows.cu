// Blocks with the same x share one move. Units are as large as the alignment of all addresses and
// lengths allows.
#include "kernels/cuda/kernels/move_rows.h"

#include <algorithm>
#include <cstdint>

#include "kernels/cuda/device_code/numbers.h"

namespace troupe::kernels::cuda {
namespace {

constexpr unsigned kThreads = 256;
constexpr int64_t kUnitsPerThread = 8;
constexpr int64_t kBlocksMax = 1024;  // per move

struct MoveRowsArgs {
  const RowMove* moves;
  const char* from;
  char* to;
};

template <typename T, int N>
TROUPE_KERNEL void MoveRowsKernel(MoveRowsArgs args) {
  using Unit = Pack<T, N>;
  const RowMove move = args.moves[BlockIndex().x];
  const auto row_units = static_cast<uint32_t>(move.row_bytes / static_cast<int64_t>(sizeof(Unit)));
  const auto units = static_cast<uint32_t>(move.rows) * row_units;
  const uint32_t stride = Blocks().y * BlockThreads();
  for (uint32_t i = BlockIndex().y * BlockThreads() + ThreadIndex(); i < units; i += stride) {
    const int64_t row = i / row_units;
    const int64_t offset = int64_t{i % row_units} * static_cast<int64_t>(sizeof(Unit));
    const auto unit = Unit::Load(
        reinterpret_cast<const T*>(args.from + move.from + row * move.from_stride + offset));
    unit.Store(reinterpret_cast<T*>(args.to + move.to + row * move.to_stride + offset));
  }
}

}  // namespace

KernelLaunch MoveRows(std::span<const RowMove> moves, const RowMove* table, const void* from,
                      void* to) {
  auto multiple = reinterpret_cast<uintptr_t>(from) | reinterpret_cast<uintptr_t>(to);
  int64_t bytes = 0;
  for (const RowMove& move : moves) {
    multiple |= static_cast<uintptr_t>(move.from | move.to | move.row_bytes);
    if (move.rows > 1) multiple |= static_cast<uintptr_t>(move.from_stride | move.to_stride);
    bytes = std::max(bytes, move.rows * move.row_bytes);
  }
  const int unit = multiple % 16 == 0 ? 16 : multiple % 4 == 0 ? 4 : 2;
  const int64_t of_block = kThreads * kUnitsPerThread * unit;
  const LaunchShape shape = {.blocks_x = static_cast<unsigned>(moves.size()),
                             .blocks_y = static_cast<unsigned>(std::clamp<int64_t>(
                                 (bytes + of_block - 1) / of_block, 1, kBlocksMax)),
                             .threads = kThreads};
  const MoveRowsArgs args = {table, static_cast<const char*>(from), static_cast<char*>(to)};
  switch (unit) {
    case 16:
      return MakeLaunch("move_rows", &MoveRowsKernel<uint32_t, 4>, shape, args);
    case 4:
      return MakeLaunch("move_rows", &MoveRowsKernel<uint32_t, 1>, shape, args);
    default:
      return MakeLaunch("move_rows", &MoveRowsKernel<uint16_t, 1>, shape, args);
  }
}

}  // namespace troupe::kernels::cuda
