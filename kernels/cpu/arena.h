// The one piece of memory that a rank's program lives in: zero pages mapped at once, on huge pages
// where the kernel has them.
#ifndef TROUPE_KERNELS_CPU_ARENA_H_
#define TROUPE_KERNELS_CPU_ARENA_H_

#include <cstddef>
#include <cstdint>

#include "base/status.h"

namespace troupe::kernels::cpu {

// Movable; unmaps when destroyed.
class Arena {
 public:
  // RESOURCE_EXHAUSTED names the bytes that could not be had.
  static StatusOr<Arena> Map(int64_t bytes);
  Arena(Arena&& other) noexcept : base_(other.base_), bytes_(other.bytes_) {
    other.base_ = nullptr;
  }
  Arena& operator=(Arena&&) = delete;
  ~Arena();

  // Aligned to a page.
  char* base() const { return base_; }
  int64_t bytes() const { return bytes_; }

 private:
  Arena(char* base, int64_t bytes) : base_(base), bytes_(bytes) {}
  char* base_;
  int64_t bytes_;
};

}  // namespace troupe::kernels::cpu

#endif  // TROUPE_KERNELS_CPU_ARENA_H_
