// The language of our CUDA kernels. nvcc reads it as CUDA C++. Any other compiler reads the same
// kernels as plain functions, whose threads the emulator (kernels/cuda/emulator/emulator.h) runs
// one at a time on the host; this tests every kernel's arithmetic without a GPU.
//
// A kernel takes one struct by value, its arguments. Within it, ThreadIndex and BlockIndex are its
// indices, SyncBlock and SyncWarp its barriers, Shuffle… exchanges values between lanes of a warp,
// and TROUPE_SHARED declares memory of a block. All threads of a block, or of a warp, must reach
// the same barriers; the emulator aborts the process if they do not.
#ifndef TROUPE_KERNELS_CUDA_DEVICE_CODE_SIMT_H_
#define TROUPE_KERNELS_CUDA_DEVICE_CODE_SIMT_H_

#include <cstddef>
#include <cstdint>

#ifdef __CUDACC__

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#define TROUPE_KERNEL __global__
// A kernel whose blocks have at most this many threads, and of which this many blocks should fit on
// a multiprocessor at once.
#define TROUPE_KERNEL_OF(threads, blocks) __global__ __launch_bounds__(threads, blocks)
#define TROUPE_DEVICE __device__ __forceinline__
#define TROUPE_SHARED __shared__
#define TROUPE_UNROLL _Pragma("unroll")
#define TROUPE_NO_UNROLL _Pragma("unroll 1")

namespace troupe::kernels::cuda {

TROUPE_DEVICE unsigned ThreadIndex() { return threadIdx.x; }
TROUPE_DEVICE unsigned BlockThreads() { return blockDim.x; }
struct BlockPlace {
  unsigned x, y;
};
TROUPE_DEVICE BlockPlace BlockIndex() { return {blockIdx.x, blockIdx.y}; }
TROUPE_DEVICE BlockPlace Blocks() { return {gridDim.x, gridDim.y}; }

TROUPE_DEVICE void SyncBlock() { __syncthreads(); }
TROUPE_DEVICE void SyncWarp() { __syncwarp(); }
// Only for whole warps.
template <typename T>
TROUPE_DEVICE T ShuffleXor(T value, int lanes) {
  return __shfl_xor_sync(0xFFFFFFFFu, value, lanes);
}
template <typename T>
TROUPE_DEVICE T ShuffleFrom(T value, int lane) {
  return __shfl_sync(0xFFFFFFFFu, value, lane);
}

TROUPE_DEVICE int32_t AtomicAdd(int32_t* to, int32_t value) { return atomicAdd(to, value); }

// The time of a clock that the whole device shares.
TROUPE_DEVICE uint64_t DeviceNanoseconds() {
  uint64_t now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
}
// Makes this thread's earlier writes visible to the host before its later ones.
TROUPE_DEVICE void SyncWithHost() { __threadfence_system(); }

// A device itself aborts the kernel at a misaligned access.
TROUPE_DEVICE void RequireAligned(const void* /*address*/, size_t /*bytes*/) {}

// The shared memory that a launch requests in addition to TROUPE_SHARED.
TROUPE_DEVICE char* DynamicShared() {
  extern __shared__ __align__(128) char memory[];
  return memory;
}

}  // namespace troupe::kernels::cuda

#else

#include "kernels/cuda/emulator/emulator.h"

#define TROUPE_KERNEL
#define TROUPE_KERNEL_OF(threads, blocks)
#define TROUPE_DEVICE inline
// They refer to the block that this host thread runs.
#define TROUPE_SHARED static thread_local
#define TROUPE_UNROLL
#define TROUPE_NO_UNROLL

namespace troupe::kernels::cuda {

using emulator::AtomicAdd;
using emulator::BlockIndex;
using emulator::BlockPlace;
using emulator::Blocks;
using emulator::BlockThreads;
using emulator::DeviceNanoseconds;
using emulator::DynamicShared;
using emulator::RequireAligned;
using emulator::ShuffleFrom;
using emulator::ShuffleXor;
using emulator::SyncBlock;
using emulator::SyncWarp;
using emulator::SyncWithHost;
using emulator::ThreadIndex;

}  // namespace troupe::kernels::cuda

#endif  // __CUDACC__

namespace troupe::kernels::cuda {

inline constexpr int kWarp = 32;

TROUPE_DEVICE int Lane() { return static_cast<int>(ThreadIndex()) % kWarp; }
TROUPE_DEVICE int Warp() { return static_cast<int>(ThreadIndex()) / kWarp; }

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_DEVICE_CODE_SIMT_H_
