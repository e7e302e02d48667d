// Runs kernels on the host: the threads of a block are fibers of one host thread, which switch at
// barriers and in a fixed order, so that a run is deterministic. For tests: thousands of times
// slower than a device. Built with ThreadSanitizer (the preset tsan), which sees the threads of a
// block as threads, it detects races between barriers.
//
// REQUIRES for all functions but RunBlocks: the caller runs within RunBlocks.
#ifndef TROUPE_KERNELS_CUDA_EMULATOR_EMULATOR_H_
#define TROUPE_KERNELS_CUDA_EMULATOR_EMULATOR_H_

#include <atomic>
#include <chrono>
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
  unsigned threads = 1;  // per block
  size_t shared_bytes = 0;
};

// Runs `thread` once for each thread of each block, one block at a time. Aborts the process if the
// threads of a block, or of a warp, do not reach the same barrier.
void RunBlocks(const Grid& grid, const std::function<void()>& thread);

unsigned ThreadIndex();
unsigned BlockThreads();
BlockPlace BlockIndex();
BlockPlace Blocks();
// Memory of Grid::shared_bytes that all threads of a block share; uninitialised.
char* DynamicShared();

void SyncBlock();
void SyncWarp();

// Returns the previous value.
inline int32_t AtomicAdd(int32_t* to, int32_t value) {
  return std::atomic_ref(*to).fetch_add(value, std::memory_order_relaxed);
}

inline uint64_t DeviceNanoseconds() {
  return static_cast<uint64_t>(
      std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count());
}
inline void SyncWithHost() { std::atomic_thread_fence(std::memory_order_seq_cst); }

// Aborts the process if `address` is not a multiple of `bytes`, as a device would.
void RequireAligned(const void* address, size_t bytes);

// The maximum size of a value that lanes exchange.
inline constexpr size_t kExchangedBytes = 32;

// Every lane of the caller's warp must call it with its own `value`. Returns the values of all
// lanes, kExchangedBytes apart, which are valid until the caller's second exchange from now.
const char* Exchange(const void* value, size_t bytes);

// The values of all lanes of a warp.
template <typename T>
class WarpValues {
 public:
  explicit WarpValues(const T& own) : all_(Exchange(&own, sizeof(T))) {
    static_assert(sizeof(T) <= kExchangedBytes);
  }
  T operator[](unsigned lane) const {
    T value;
    std::memcpy(&value, all_ + lane * kExchangedBytes, sizeof(T));
    return value;
  }

 private:
  const char* all_;
};

template <typename T>
T ShuffleFrom(T value, int lane) {
  return WarpValues<T>(value)[static_cast<unsigned>(lane)];
}
template <typename T>
T ShuffleXor(T value, int lanes) {
  return ShuffleFrom(value, static_cast<int>(ThreadIndex() % 32) ^ lanes);
}

// Starts to copy `bytes` to `to` and to clear the `zeros` bytes after them. Completes when the
// caller waits for it; until then the destination is all ones (NaN as bfloat16 or float32).
// REQUIRES: both addresses are multiples of bytes + zeros.
void BeginCopy(void* to, const void* from, size_t bytes, size_t zeros);
// Forms a group of the copies that the caller started since its last group.
void EndCopyGroup();
// Waits until at most the latest `groups` of the caller's groups are in flight. The process is
// aborted if a thread leaves the kernel with copies in flight.
void WaitForCopies(int groups);

}  // namespace troupe::kernels::cuda::emulator

#endif  // TROUPE_KERNELS_CUDA_EMULATOR_EMULATOR_H_
