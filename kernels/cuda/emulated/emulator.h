// Runs kernels on the host: the threads of a block are fibers of one host thread, which take turns at barriers and in a
// fixed order, so that a run is deterministic. For tests: thousands of times slower than a device, and blind to races
// between barriers.
//
// REQUIRES of all but RunBlocks: called from what it runs.
#ifndef TROUPE_KERNELS_CUDA_EMULATED_EMULATOR_H_
#define TROUPE_KERNELS_CUDA_EMULATED_EMULATOR_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>

namespace troupe::kernels::cuda::emulator {

struct BlockPlace {
  unsigned x, y;
};
struct Grid {
  BlockPlace blocks;
  unsigned threads = 1;  // of a block
  size_t shared_bytes = 0;
};

// Runs `thread` once for each thread of each block, block after block. Ends the process where the threads of a block, or
// of a warp, do not meet at the same barrier.
void RunBlocks(const Grid& grid, const std::function<void()>& thread);

unsigned ThreadIndex();
unsigned BlockThreads();
BlockPlace BlockIndex();
BlockPlace Blocks();
// Grid::shared_bytes, the same for every thread of a block, not cleared.
char* DynamicShared();

void SyncBlock();
void SyncWarp();

// Returns what was there.
inline int32_t AtomicAdd(int32_t* to, int32_t value) {
  const int32_t before = *to;
  *to += value;
  return before;
}

// What lane `lane` of the caller's warp holds; every lane of the warp calls it with its own `value`, of at most 16 bytes.
void Exchange(void* value, size_t bytes, int lane);

template <typename T>
T ShuffleFrom(T value, int lane) {
  Exchange(&value, sizeof(T), lane);
  return value;
}
template <typename T>
T ShuffleXor(T value, int lanes) {
  return ShuffleFrom(value, static_cast<int>(ThreadIndex() % 32) ^ lanes);
}

}  // namespace troupe::kernels::cuda::emulator

#endif  // TROUPE_KERNELS_CUDA_EMULATED_EMULATOR_H_
