// Copies of rows that lie apart, all in one launch.
#ifndef TROUPE_KERNELS_CUDA_MOVE_ROWS_H_
#define TROUPE_KERNELS_CUDA_MOVE_ROWS_H_

#include <span>

#include "kernels/cuda/launch.h"
#include "kernels/row_move.h"

namespace troupe::kernels::cuda {

// Does `moves`, which the device has at `table`, from `from` to `to`; what they write does not overlap. REQUIRES: there is
// a move; every number of them is even, and none has 2^31 or more times two bytes.
KernelLaunch MoveRows(std::span<const RowMove> moves, const RowMove* table, const void* from, void* to);

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_MOVE_ROWS_H_
