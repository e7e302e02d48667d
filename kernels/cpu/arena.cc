#include "kernels/cpu/arena.h"

#include <sys/mman.h>

#include <algorithm>

namespace troupe::kernels::cpu {

StatusOr<Arena> Arena::Map(int64_t bytes) {
  bytes = std::max<int64_t>(bytes, 1);
  void* base = mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) {
    return ResourceExhausted("cannot allocate {} bytes of memory for the program", bytes);
  }
  // Only advice: without huge pages everything works, but slower.
  (void)madvise(base, static_cast<size_t>(bytes), MADV_HUGEPAGE);
  return Arena(static_cast<char*>(base), bytes);
}

Arena::~Arena() {
  if (base_ != nullptr) munmap(base_, static_cast<size_t>(bytes_));
}

}  // namespace troupe::kernels::cpu
