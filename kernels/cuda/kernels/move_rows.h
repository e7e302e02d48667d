// Strided copies of rows, all in one launch.
#ifndef TROUPE_KERNELS_CUDA_KERNELS_MOVE_ROWS_H_
#define TROUPE_KERNELS_CUDA_KERNELS_MOVE_ROWS_H_

#include <span>

#include "kernels/cuda/device_code/launch.h"
#include "kernels/exchange/row_move.h"

namespace troupe::kernels::cuda {

// Executes `moves`, whose copy on the device is `table`, from `from` to `to`. REQUIRES: there is at
// least one move; destinations do not overlap; all numbers of a move are even; no move has 2^31 or
// more units of two bytes.
KernelLaunch MoveRows(std::span<const RowMove> moves, const RowMove* table, const void* from,
                      void* to);

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_KERNELS_MOVE_ROWS_H_
