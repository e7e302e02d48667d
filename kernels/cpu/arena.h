// The memory of a rank's program: one mapping of zeroed pages, huge pages if the operating system
// has them.
#ifndef TROUPE_KERNELS_CPU_ARENA_H_
#define TROUPE_KERNELS_CPU_ARENA_H_

#include <cstddef>
#include <cstdint>

#include "base/status.h"

namespace troupe::kernels::cpu {

// Movable; unmaps the memory on destruction.
class Arena {
 public:
  // Errors: RESOURCE_EXHAUSTED, with the number of bytes that could not be mapped.
  static StatusOr<Arena> Map(int64_t bytes);
  Arena(Arena&& other) noexcept : base_(other.base_), bytes_(other.bytes_) {
    other.base_ = nullptr;
  }
  Arena& operator=(Arena&&) = delete;
  ~Arena();

  // Page-aligned.
  char* base() const { return base_; }
  int64_t bytes() const { return bytes_; }

 private:
  Arena(char* base, int64_t bytes) : base_(base), bytes_(bytes) {}
  char* base_;
  int64_t bytes_;
};

}  // namespace troupe::kernels::cpu

#endif  // TROUPE_KERNELS_CPU_ARENA_H_
