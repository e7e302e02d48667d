// Copies the number of rows that the counts sum to, which only the device knows. The rows are
// contiguous and copied as one range.
#include <algorithm>

#include "kernels/cuda/device_code/counted_rows.h"
#include "kernels/cuda/device_code/numbers.h"
#include "kernels/cuda/device_code/shapes.h"
#include "kernels/cuda/kernels/kernels.h"

namespace troupe::kernels::cuda {
namespace {

constexpr int64_t kBlocksMax = 132 * 8;
constexpr unsigned kThreads = 256;

template <typename Unit>
TROUPE_KERNEL void CopyRoutedRowsKernel(CopyRoutedRowsArgs args) {
  const int64_t units = RowsOfCounts(args.counts, 0, args.num_counts) * args.row_bytes /
                        static_cast<int64_t>(sizeof(Unit));
  for (int64_t i = int64_t{BlockIndex().x} * kThreads + ThreadIndex(); i < units;
       i += int64_t{Blocks().x} * kThreads) {
    static_cast<Unit*>(args.y)[i] = static_cast<const Unit*>(args.x)[i];
  }
}

template <typename Unit>
KernelLaunch CopyOf(const CopyRoutedRowsArgs& args) {
  LaunchShape shape =
      ThreadsFor(args.rows * args.row_bytes / static_cast<int64_t>(sizeof(Unit)), kThreads);
  shape.blocks_x = std::min(shape.blocks_x, static_cast<unsigned>(kBlocksMax));
  return MakeLaunch("copy_routed_rows", &CopyRoutedRowsKernel<Unit>, shape, args);
}

}  // namespace

KernelLaunch CopyRoutedRows(const CopyRoutedRowsArgs& args) {
  return Packs(args.row_bytes, 1, {args.x, args.y}) ? CopyOf<Pack<uint32_t, 4>>(args)
                                                    : CopyOf<uint16_t>(args);
}

}  // namespace troupe::kernels::cuda
