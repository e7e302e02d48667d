// Runs kernels on the host: the threads of a block are fibers of one host thread, which take turns at barriers and in a
// fixed order, so that a run is deterministic. For tests: thousands of times slower than a device. Races between barriers it
// shows where it is built with ThreadSanitizer (the preset tsan), to which the threads of a block are threads.
//
// REQUIRES of all but RunBlocks: called from what it runs.
#ifndef TROUPE_KERNELS_CUDA_EMULATED_EMULATOR_H_
#define TROUPE_KERNELS_CUDA_EMULATED_EMULATOR_H_

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
  return std::atomic_ref(*to).fetch_add(value, std::memory_order_relaxed);
}

inline uint64_t DeviceNanoseconds() {
  return static_cast<uint64_t>(std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count());
}
inline void SyncWithHost() { std::atomic_thread_fence(std::memory_order_seq_cst); }

// Ends the process where `address` is no multiple of `bytes`, as a device would.
void RequireAligned(const void* address, size_t bytes);

// What a value that lanes exchange may have at most.
inline constexpr size_t kExchangedBytes = 32;

// Every lane of the caller's warp calls it with its own `value`. Those of all lanes, kExchangedBytes apart, until the
// caller's exchange after the next.
const char* Exchange(const void* value, size_t bytes);

// The values of a warp's lanes.
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

// Begins to copy `bytes` to `to` and clears the `zeros` bytes behind them. Done when the caller waits for it; until then
// what is there is neither the old nor what will come, but all ones (as bfloat16 or float32: a NaN). REQUIRES: both addresses
// are multiples of bytes + zeros.
void BeginCopy(void* to, const void* from, size_t bytes, size_t zeros);
// Those that the caller began since its last group are a group.
void EndCopyGroup();
// Until no more than `groups` of the caller's groups are under way, and they are its latest. It ends the process to leave
// the kernel with copies that were never waited for.
void WaitForCopies(int groups);

}  // namespace troupe::kernels::cuda::emulator

#endif  // TROUPE_KERNELS_CUDA_EMULATED_EMULATOR_H_
