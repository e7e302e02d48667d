// Asynchronous copies from device memory to shared memory, which overlap with the computation of
// the threads that start them. All copies that a thread starts between two calls of EndCopyGroup
// form a group. A group is visible to the thread once it has waited for it, and to the whole block
// after the next barrier.
#ifndef TROUPE_KERNELS_CUDA_DEVICE_CODE_ASYNC_COPY_H_
#define TROUPE_KERNELS_CUDA_DEVICE_CODE_ASYNC_COPY_H_

#include "kernels/cuda/device_code/simt.h"

namespace troupe::kernels::cuda {

inline constexpr int kCopyBytes = 16;

// Starts a copy of sixteen bytes to `shared`: the first `bytes` of them come from `global`, the
// rest are zeros. `global` is not read if bytes is 0. REQUIRES: both addresses are multiples of 16.
TROUPE_DEVICE void BeginCopy(void* shared, const void* global, int bytes) {
#ifdef __CUDA_ARCH__
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(
                   static_cast<uint32_t>(__cvta_generic_to_shared(shared))),
               "l"(__cvta_generic_to_global(global)), "r"(bytes)
               : "memory");
#elif !defined(__CUDACC__)
  emulator::BeginCopy(shared, global, static_cast<size_t>(bytes),
                      static_cast<size_t>(kCopyBytes - bytes));
#endif
}

TROUPE_DEVICE void EndCopyGroup() {
#ifdef __CUDA_ARCH__
  asm volatile("cp.async.commit_group;\n" ::: "memory");
#elif !defined(__CUDACC__)
  emulator::EndCopyGroup();
#endif
}

// Waits until at most the latest kGroups groups of this thread are in flight.
template <int kGroups>
TROUPE_DEVICE void WaitForCopies() {
#ifdef __CUDA_ARCH__
  asm volatile("cp.async.wait_group %0;\n" ::"n"(kGroups) : "memory");
#elif !defined(__CUDACC__)
  emulator::WaitForCopies(kGroups);
#endif
}

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_DEVICE_CODE_ASYNC_COPY_H_
