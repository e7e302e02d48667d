// A memory region for direct I/O. Its address is a multiple of 4,096, it uses huge pages where the
// kernel provides them, and it is zero-filled, so that the first write causes no page allocation.
//
// The object is not thread-safe; its bytes may be used by several threads like any memory.
#ifndef TROUPE_BASE_ALIGNED_MEMORY_H_
#define TROUPE_BASE_ALIGNED_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/status.h"

namespace troupe {

class AlignedMemory {
 public:
  AlignedMemory() = default;
  AlignedMemory(AlignedMemory&& other) noexcept;
  AlignedMemory& operator=(AlignedMemory&& other) noexcept;
  ~AlignedMemory();

  // Allocates at least `bytes` bytes, rounded up to a multiple of 4,096. RESOURCE_EXHAUSTED if the
  // memory cannot be allocated.
  static StatusOr<AlignedMemory> Make(int64_t bytes);

  std::span<std::byte> bytes() const { return bytes_; }

 private:
  std::span<std::byte> bytes_;
};

}  // namespace troupe

#endif  // TROUPE_BASE_ALIGNED_MEMORY_H_
