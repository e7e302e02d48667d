// Caches a row in shared memory for a block that reads it twice, so that device memory is read
// once. Without this, rows of a large vocabulary, one per concurrent block, would not stay in the
// GPU's caches. If a row does not fit, the rest of it is read again; it is small enough for the L2
// cache. Pure.
#ifndef TROUPE_KERNELS_CUDA_DEVICE_CODE_CACHED_ROW_H_
#define TROUPE_KERNELS_CUDA_DEVICE_CODE_CACHED_ROW_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/cuda/device_code/launch.h"
#include "kernels/cuda/device_code/shapes.h"

namespace troupe::kernels::cuda {

// An H100 gives a block 227 KiB, an A100 163 KiB; other GPUs that run sm_80 code give it 99 KiB.
#ifdef __CUDA_ARCH_LIST__
inline constexpr int kArchitectures[] = {__CUDA_ARCH_LIST__};
inline constexpr int64_t kMostBytesOfRow = kArchitectures[0] < 900 ? 98 << 10 : 160 << 10;
#else
inline constexpr int64_t kMostBytesOfRow = 160 << 10;
#endif
// Up to this size two blocks fit on a multiprocessor of an H100: one reads while the other writes.
// A block that has a multiprocessor for itself uses more threads.
inline constexpr int64_t kMostBytesOfTwo = 110 << 10;
inline constexpr unsigned kMostThreadsOfRow = 1024;

// Number of elements cached of a row of `width` elements of `bytes` bytes; a multiple of `pack`
// unless it is the whole row.
constexpr int64_t CachedOfRow(int64_t width, int64_t pack, int64_t bytes) {
  return std::min(width, kMostBytesOfRow / (pack * bytes) * pack);
}

// One block for each of `rows` rows of `packs` packs, of which `cached_bytes` bytes are cached.
inline LaunchShape CachedRowShape(int64_t rows, int64_t packs, size_t cached_bytes) {
  const bool alone = cached_bytes > static_cast<size_t>(kMostBytesOfTwo);
  LaunchShape shape = BlocksFor(rows, packs, alone ? kMostThreadsOfRow : kMostThreadsOfRow / 2);
  shape.shared_bytes = cached_bytes;
  return shape;
}

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_DEVICE_CODE_CACHED_ROW_H_
