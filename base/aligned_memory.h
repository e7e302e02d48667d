// A region of memory for unbuffered files: in large pages where the kernel gives them, its address
// a multiple of 4,096 anywhere; filled with zeros and present, so that nothing is
// allocated when it is first written.
//
// Not thread-safe, but its bytes may be used by several threads as any memory.
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

  // At least `bytes`, rounded up to a multiple of 4,096. RESOURCE_EXHAUSTED where it cannot be had.
  static StatusOr<AlignedMemory> Make(int64_t bytes);

  std::span<std::byte> bytes() const { return bytes_; }

 private:
  std::span<std::byte> bytes_;
};

}  // namespace troupe

#endif  // TROUPE_BASE_ALIGNED_MEMORY_H_
