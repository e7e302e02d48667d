// Launch shapes of kernels: numbers of blocks and threads. Pure, host code.
#ifndef TROUPE_KERNELS_CUDA_DEVICE_CODE_SHAPES_H_
#define TROUPE_KERNELS_CUDA_DEVICE_CODE_SHAPES_H_

#include <algorithm>
#include <cstdint>
#include <initializer_list>

#include "kernels/cuda/device_code/launch.h"

namespace troupe::kernels::cuda {

// One thread for each of `count` pieces of work, `threads` per block. REQUIRES: count < 2^31 ·
// threads.
inline LaunchShape ThreadsFor(int64_t count, unsigned threads = 256) {
  return {.blocks_x = static_cast<unsigned>(std::max<int64_t>(1, (count + threads - 1) / threads)),
          .threads = threads};
}

// One block of whole warps for each of `rows`; its threads share `pieces` pieces of work.
inline LaunchShape BlocksFor(int64_t rows, int64_t pieces, unsigned threads_max = 512) {
  const int64_t warps = std::clamp<int64_t>((pieces + 31) / 32, 1, threads_max / 32);
  return {.blocks_x = static_cast<unsigned>(std::max<int64_t>(1, rows)),
          .threads = static_cast<unsigned>(32 * warps)};
}

// Whether rows of `width` elements of `bytes` may be accessed sixteen bytes at a time, and float32
// rows of the same width with the same number of elements at a time. Each address is the start of a
// row. Arenas align every value more strictly than needed.
inline bool Packs(int64_t width, int64_t bytes, std::initializer_list<const void*> addresses) {
  return width * bytes % 16 == 0 && std::ranges::all_of(addresses, [](const void* address) {
           return reinterpret_cast<uintptr_t>(address) % 32 == 0;
         });
}

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_DEVICE_CODE_SHAPES_H_
