#include "base/aligned_memory.h"

#include <sys/mman.h>

#include <cstring>
#include <utility>

#include "base/check.h"

namespace troupe {

StatusOr<AlignedMemory> AlignedMemory::Make(int64_t bytes) {
  TROUPE_CHECK(bytes > 0, "{}", bytes);
  constexpr int64_t kPage = 4096;
  const size_t size = static_cast<size_t>((bytes + kPage - 1) / kPage * kPage);
  void* const address =
      mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) return ResourceExhausted("cannot allocate {} bytes of memory", size);
  // A few huge pages are pinned and looked up faster than many small ones. A failure is harmless.
  (void)madvise(address, size, MADV_HUGEPAGE);
  std::memset(address, 0, size);
  AlignedMemory memory;
  memory.bytes_ = {static_cast<std::byte*>(address), size};
  return memory;
}

AlignedMemory::AlignedMemory(AlignedMemory&& other) noexcept
    : bytes_(std::exchange(other.bytes_, {})) {}

AlignedMemory& AlignedMemory::operator=(AlignedMemory&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

AlignedMemory::~AlignedMemory() {
  if (!bytes_.empty()) munmap(bytes_.data(), bytes_.size());
}

}  // namespace troupe
