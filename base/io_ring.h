// Writes and reads through Linux's io_uring, a request ring shared with the kernel, so that several
// requests are in flight without a thread for each.
//
// The system calls are made directly: the part of the interface in use is four calls and two mapped
// arrays, less code than a library would add. Not thread-safe.
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

  // Creates a ring for up to `entries` requests in flight. UNAVAILABLE if the kernel has no
  // io_uring, is too old or forbids it, as containers may.
  static StatusOr<std::unique_ptr<IoRing>> Make(unsigned entries);
  ~IoRing();
  IoRing(const IoRing&) = delete;
  IoRing& operator=(const IoRing&) = delete;

  // Registers `memory` with the kernel, which then need not look up the pages of each request.
  // After an error (a limit on locked memory) the ring remains usable without registration.
  Status Register(std::span<std::byte> memory);

  bool registered() const { return !registered_.empty(); }
  // Returns the number of requests started and not yet returned by Next.
  unsigned in_flight() const { return in_flight_; }

  // Starts a request; `request` is returned with its completion. REQUIRES: fewer than `entries`
  // requests are in flight; the bytes remain valid until the request completes.
  Status StartWrite(int file, int64_t offset, std::span<const std::byte> bytes, uint64_t request);
  Status StartRead(int file, int64_t offset, std::span<std::byte> bytes, uint64_t request);

  // Waits for the next completion. REQUIRES: a request is in flight.
  StatusOr<Completion> Next();

 private:
  IoRing() = default;
  Status Start(bool write, int file, int64_t offset, std::span<const std::byte> bytes,
               uint64_t request);

  int ring_ = -1;
  unsigned entries_ = 0;
  std::byte* queues_ = nullptr;  // the indices of both queues, and the completions
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
