// Copies from the device's memory to shared memory that go on while their threads compute. What a thread began since its
// last EndCopyGroup is a group; a group that the thread has waited for is there for it, and after the next barrier for its
// block.
#ifndef TROUPE_KERNELS_CUDA_ASYNC_COPY_H_
#define TROUPE_KERNELS_CUDA_ASYNC_COPY_H_

#include "kernels/cuda/simt.h"

namespace troupe::kernels::cuda {

inline constexpr int kCopyBytes = 16;

// Sixteen bytes to `shared`: the first `bytes` of them from `global`, zeros behind them. `global` is not read where bytes
// is 0. REQUIRES: both addresses are multiples of 16.
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

// Until at most the latest kGroups of the thread's groups are under way.
template <int kGroups>
TROUPE_DEVICE void WaitForCopies() {
#ifdef __CUDA_ARCH__
  asm volatile("cp.async.wait_group %0;\n" ::"n"(kGroups) : "memory");
#elif !defined(__CUDACC__)
  emulator::WaitForCopies(kGroups);
#endif
}

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_ASYNC_COPY_H_
