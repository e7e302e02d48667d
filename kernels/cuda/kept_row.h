// How a block that goes over a row twice keeps it in shared memory in between: memory of the device is read once, where else
// a row of a large vocabulary, of as many blocks as run at once, would not stay in its caches. Of a row that does not fit the
// rest is read again, little enough for the L2 cache. Pure.
#ifndef TROUPE_KERNELS_CUDA_KEPT_ROW_H_
#define TROUPE_KERNELS_CUDA_KEPT_ROW_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/cuda/launch.h"
#include "kernels/cuda/shapes.h"

namespace troupe::kernels::cuda {

// An H100 gives a block 227 KiB, an A100 163, and others that run what is compiled for sm_80 give it 99.
#ifdef __CUDA_ARCH_LIST__
inline constexpr int kArchitectures[] = {__CUDA_ARCH_LIST__};
inline constexpr int64_t kMostBytesOfRow = kArchitectures[0] < 900 ? 98 << 10 : 160 << 10;
#else
inline constexpr int64_t kMostBytesOfRow = 160 << 10;
#endif
// Two blocks fit on a multiprocessor of an H100 up to this: one reads while the other writes. A block that has one for
// itself has more threads.
inline constexpr int64_t kMostBytesOfTwo = 110 << 10;
inline constexpr unsigned kMostThreadsOfRow = 1024;

// Elements that are kept of a row of `width` elements of `bytes`: whole packs of `pack`.
constexpr int64_t KeptOfRow(int64_t width, int64_t pack, int64_t bytes) {
  return std::min(width, kMostBytesOfRow / (pack * bytes) * pack);
}

// A block for each of `rows` of `packs` packs, of which `kept_bytes` are kept.
inline LaunchShape KeptRowShape(int64_t rows, int64_t packs, size_t kept_bytes) {
  const bool alone = kept_bytes > static_cast<size_t>(kMostBytesOfTwo);
  LaunchShape shape = BlocksFor(rows, packs, alone ? kMostThreadsOfRow : kMostThreadsOfRow / 2);
  shape.shared_bytes = kept_bytes;
  return shape;
}

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_KEPT_ROW_H_
