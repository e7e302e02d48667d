#include "base/io_ring.h"

#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "base/check.h"

namespace troupe {
namespace {

// The kernel registers at most 1 GiB as one buffer.
constexpr size_t kBufferBytes = size_t{1} << 30;

}  // namespace

StatusOr<std::unique_ptr<IoRing>> IoRing::Make(unsigned entries) {
  io_uring_params params{};
  std::unique_ptr<IoRing> ring(new IoRing());
  ring->ring_ = static_cast<int>(syscall(SYS_io_uring_setup, entries, &params));
  if (ring->ring_ < 0) return Unavailable("io_uring: {}", ToString(ErrnoStatus(errno, "setup")));
  // These features imply Linux 5.6, which has one mapping for both queues, and reads and writes
  // without I/O vectors.
  if ((params.features & IORING_FEAT_SINGLE_MMAP) == 0 ||
      (params.features & IORING_FEAT_RW_CUR_POS) == 0) {
    return Unavailable("io_uring: this kernel supports features {:#x} only", params.features);
  }
  ring->entries_ = params.sq_entries;
  ring->queues_bytes_ = std::max(params.sq_off.array + params.sq_entries * sizeof(unsigned),
                                 params.cq_off.cqes + params.cq_entries * sizeof(io_uring_cqe));
  void* const queues = mmap(nullptr, ring->queues_bytes_, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_POPULATE, ring->ring_, IORING_OFF_SQ_RING);
  if (queues == MAP_FAILED) return Unavailable("io_uring: {}", ToString(ErrnoStatus(errno, "map")));
  ring->queues_ = static_cast<std::byte*>(queues);
  ring->requests_bytes_ = params.sq_entries * sizeof(io_uring_sqe);
  void* const requests = mmap(nullptr, ring->requests_bytes_, PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_POPULATE, ring->ring_, IORING_OFF_SQES);
  if (requests == MAP_FAILED) {
    return Unavailable("io_uring: {}", ToString(ErrnoStatus(errno, "map")));
  }
  ring->requests_ = static_cast<io_uring_sqe*>(requests);
  const auto word = [&](uint32_t offset) {
    return reinterpret_cast<unsigned*>(ring->queues_ + offset);
  };
  ring->submit_tail_ = word(params.sq_off.tail);
  ring->submit_array_ = word(params.sq_off.array);
  ring->submit_mask_ = *word(params.sq_off.ring_mask);
  ring->complete_head_ = word(params.cq_off.head);
  ring->complete_tail_ = word(params.cq_off.tail);
  ring->complete_mask_ = *word(params.cq_off.ring_mask);
  ring->completions_ = reinterpret_cast<const io_uring_cqe*>(ring->queues_ + params.cq_off.cqes);
  return ring;
}

IoRing::~IoRing() {
  if (requests_ != nullptr) munmap(requests_, requests_bytes_);
  if (queues_ != nullptr) munmap(queues_, queues_bytes_);
  if (ring_ >= 0) close(ring_);
}

Status IoRing::Register(std::span<std::byte> memory) {
  std::vector<iovec> buffers;
  for (size_t begin = 0; begin < memory.size(); begin += kBufferBytes) {
    buffers.push_back({memory.data() + begin, std::min(kBufferBytes, memory.size() - begin)});
  }
  if (syscall(SYS_io_uring_register, ring_, IORING_REGISTER_BUFFERS, buffers.data(),
              static_cast<unsigned>(buffers.size())) != 0) {
    return ErrnoStatus(errno, "register memory with io_uring");
  }
  registered_ = memory;
  return OkStatus();
}

Status IoRing::StartWrite(int file, int64_t offset, std::span<const std::byte> bytes,
                          uint64_t request) {
  return Start(true, file, offset, bytes, request);
}

Status IoRing::StartRead(int file, int64_t offset, std::span<std::byte> bytes, uint64_t request) {
  return Start(false, file, offset, bytes, request);
}

Status IoRing::Start(bool write, int file, int64_t offset, std::span<const std::byte> bytes,
                     uint64_t request) {
  const unsigned tail = *submit_tail_;  // only this thread writes it
  const unsigned index = tail & submit_mask_;
  io_uring_sqe& entry = requests_[index];
  entry = {};
  entry.opcode = write ? IORING_OP_WRITE : IORING_OP_READ;
  entry.fd = file;
  entry.off = static_cast<uint64_t>(offset);
  entry.addr = reinterpret_cast<uint64_t>(bytes.data());
  entry.len = static_cast<uint32_t>(bytes.size());
  entry.user_data = request;
  const bool within = !registered_.empty() && bytes.data() >= registered_.data() &&
                      bytes.data() + bytes.size() <= registered_.data() + registered_.size();
  if (within) {
    const size_t first = static_cast<size_t>(bytes.data() - registered_.data());
    const size_t buffer = first / kBufferBytes;
    if (buffer == (first + bytes.size() - 1) / kBufferBytes) {
      entry.opcode = write ? IORING_OP_WRITE_FIXED : IORING_OP_READ_FIXED;
      entry.buf_index = static_cast<uint16_t>(buffer);
    }
  }
  submit_array_[index] = index;
  std::atomic_ref<unsigned>(*submit_tail_).store(tail + 1, std::memory_order_release);
  while (true) {
    const long taken = syscall(SYS_io_uring_enter, ring_, 1, 0, 0, nullptr, 0);
    if (taken == 1) {
      ++in_flight_;
      return OkStatus();
    }
    if (taken < 0 && errno == EINTR) continue;
    return ErrnoStatus(taken < 0 ? errno : EAGAIN, "io_uring accepts no request");
  }
}

StatusOr<IoRing::Completion> IoRing::Next() {
  const unsigned head = *complete_head_;  // only this thread writes it
  while (std::atomic_ref<unsigned>(*complete_tail_).load(std::memory_order_acquire) == head) {
    if (syscall(SYS_io_uring_enter, ring_, 0, 1, IORING_ENTER_GETEVENTS, nullptr, 0) < 0 &&
        errno != EINTR) {
      return ErrnoStatus(errno, "wait for io_uring");
    }
  }
  const io_uring_cqe& entry = completions_[head & complete_mask_];
  const Completion completion{entry.user_data, entry.res};
  std::atomic_ref<unsigned>(*complete_head_).store(head + 1, std::memory_order_release);
  --in_flight_;
  return completion;
}

}  // namespace troupe
