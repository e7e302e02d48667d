// Writes and reads through Linux's io_uring: a ring of requests shared with the kernel, so that
// several are on their way without a thread for each.
//
// The system calls are made directly: what is used of the interface is four calls and two mapped
// arrays, less than a library would bring along. Not thread-safe.
#ifndef TROUPE_BASE_IO_RING_H_
#define TROUPE_BASE_IO_RING_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/status.h"

struct io_uring_sqe;
struct io_uring_cqe;

namespace troupe {

class IoRing {
 public:
  struct Completion {
    uint64_t request = 0;
    int result = 0;  // bytes, or a negative error number
  };

  // A ring for `entries` requests on their way. UNAVAILABLE where the kernel has none, is too old
  // or forbids it, as containers may.
  static StatusOr<std::unique_ptr<IoRing>> Make(unsigned entries);
  ~IoRing();
  IoRing(const IoRing&) = delete;
  IoRing& operator=(const IoRing&) = delete;

  // Tells the kernel where the bytes of requests lie, so that it needs not look the pages up for
  // each. An error (a limit on locked memory) leaves the ring fit for use without.
  Status Register(std::span<std::byte> memory);

  bool registered() const { return !registered_.empty(); }
  // Requests that were begun and not taken in by Next.
  unsigned in_flight() const { return in_flight_; }

  // Begins a request. `request` comes back with its completion. REQUIRES: fewer than `entries` are
  // on their way; the bytes stay until it is complete.
  Status StartWrite(int file, int64_t offset, std::span<const std::byte> bytes, uint64_t request);
  Status StartRead(int file, int64_t offset, std::span<std::byte> bytes, uint64_t request);

  // Waits for the next completion. REQUIRES: a request is on its way.
  StatusOr<Completion> Next();

 private:
  IoRing() = default;
  Status Start(bool write, int file, int64_t offset, std::span<const std::byte> bytes,
               uint64_t request);

  int ring_ = -1;
  unsigned entries_ = 0;
  std::byte* queues_ = nullptr;  // both queues' indices, and the completions
  size_t queues_bytes_ = 0;
  io_uring_sqe* requests_ = nullptr;
  size_t requests_bytes_ = 0;
  unsigned* submit_tail_ = nullptr;
  unsigned* submit_array_ = nullptr;
  unsigned submit_mask_ = 0;
  unsigned* complete_head_ = nullptr;
  unsigned* complete_tail_ = nullptr;
  unsigned complete_mask_ = 0;
  const io_uring_cqe* completions_ = nullptr;
  std::span<const std::byte> registered_;
  unsigned in_flight_ = 0;
};

}  // namespace troupe

#endif  // TROUPE_BASE_IO_RING_H_
