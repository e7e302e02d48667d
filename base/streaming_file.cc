#include "base/streaming_file.h"

#include <fcntl.h>
#include <linux/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/check.h"
#include "base/io_ring.h"

namespace troupe {
namespace {

constexpr int64_t RoundedUp(int64_t bytes) {
  return (bytes + kStreamAlignment - 1) / kStreamAlignment * kStreamAlignment;
}

// Returns whether O_DIRECT works in units of kStreamAlignment. Kernels before 6.1 do not report
// this; if they accept O_DIRECT at all, it does.
bool DirectUnitFits(int fd) {
  struct statx info {};
  if (syscall(SYS_statx, fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &info) != 0) return true;
  if ((info.stx_mask & STATX_DIOALIGN) == 0) return true;
  return info.stx_dio_offset_align != 0 && kStreamAlignment % info.stx_dio_offset_align == 0 &&
         kStreamAlignment % info.stx_dio_mem_align == 0;
}

class PosixStreamingFile final : public StreamingFile {
 public:
  PosixStreamingFile(std::string path, int fd, int64_t size_bytes, WriteMethod method,
                     std::unique_ptr<IoRing> own_ring, IoRing* ring)
      : path_(std::move(path)),
        fd_(fd),
        size_bytes_(size_bytes),
        method_(method),
        own_ring_(std::move(own_ring)),
        ring_(ring) {}
  PosixStreamingFile(const PosixStreamingFile&) = delete;
  PosixStreamingFile& operator=(const PosixStreamingFile&) = delete;

  ~PosixStreamingFile() override {
    // The kernel may still read the memory of writes in flight.
    while (in_flight_ > 0 && ring_->Next().ok()) --in_flight_;
    if (fd_ >= 0) close(fd_);
  }

  WriteMethod method() const override { return method_; }

  Status StartWrite(int slot, int64_t offset, std::span<const std::byte> bytes) override {
    TROUPE_CHECK(slot >= 0 && slot < kSlots && offset % kStreamAlignment == 0 &&
                     static_cast<int64_t>(bytes.size()) % kStreamAlignment == 0 &&
                     reinterpret_cast<uintptr_t>(bytes.data()) % kStreamAlignment == 0 &&
                     offset + static_cast<int64_t>(bytes.size()) <= RoundedUp(size_bytes_),
                 "slot {}, offset {}, {} bytes", slot, offset, bytes.size());
    if (ring_ == nullptr) return WriteAll(offset, bytes);
    TROUPE_RETURN_IF_ERROR(Wait(slot));
    TROUPE_RETURN_IF_ERROR(Annotate(
        ring_->StartWrite(fd_, offset, bytes, static_cast<uint64_t>(slot)), "write " + path_));
    slots_[slot] = {true, offset, bytes};
    ++in_flight_;
    return OkStatus();
  }

  Status Wait(int slot) override {
    while (slots_[slot].busy) TROUPE_RETURN_IF_ERROR(Reap());
    return OkStatus();
  }

  Status Finish() override {
    while (in_flight_ > 0) TROUPE_RETURN_IF_ERROR(Reap());
    if (size_bytes_ != RoundedUp(size_bytes_) && ftruncate(fd_, size_bytes_) != 0) {
      return ErrnoStatus(errno, "cut " + path_);
    }
    // Not retried, even on EINTR: see the contract of Finish.
    return fdatasync(fd_) == 0 ? OkStatus() : ErrnoStatus(errno, "fdatasync " + path_);
  }

  Status Close() override {
    const int fd = std::exchange(fd_, -1);
    return close(fd) == 0 || errno == EINTR ? OkStatus() : ErrnoStatus(errno, "close " + path_);
  }

 private:
  struct Slot {
    bool busy = false;
    int64_t offset = 0;
    std::span<const std::byte> bytes;
  };

  Status WriteAll(int64_t offset, std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t written = pwrite(fd_, bytes.data(), bytes.size(), offset);
      if (written < 0) {
        if (errno == EINTR) continue;
        return ErrnoStatus(errno, "write " + path_);
      }
      if (written == 0) return ErrnoStatus(EIO, "write " + path_);
      bytes = bytes.subspan(static_cast<size_t>(written));
      offset += written;
    }
    return OkStatus();
  }

  // Waits for one write in flight and processes its completion.
  Status Reap() {
    const auto done = ring_->Next();
    if (!done.ok()) return Annotate(done.status(), "write " + path_);
    Slot& slot = slots_[done->request];
    slot.busy = false;
    --in_flight_;
    const int64_t bytes = static_cast<int64_t>(slot.bytes.size());
    if (done->result == bytes) return OkStatus();
    if (done->result < 0 && done->result != -EAGAIN && done->result != -EINTR) {
      return ErrnoStatus(-done->result, "write " + path_);
    }
    // A short or failed write: a plain write either writes the rest or reports the reason.
    const int64_t written = std::max(0, done->result) / kStreamAlignment * kStreamAlignment;
    return WriteAll(slot.offset + written, slot.bytes.subspan(static_cast<size_t>(written)));
  }

  const std::string path_;
  int fd_;
  const int64_t size_bytes_;
  const WriteMethod method_;
  const std::unique_ptr<IoRing> own_ring_;
  IoRing* const ring_;  // null: writes are synchronous
  std::array<Slot, kSlots> slots_;
  int in_flight_ = 0;
};

}  // namespace

std::string_view Name(WriteMethod method) {
  switch (method) {
    case WriteMethod::kIoUringRegistered:
      return "io_uring_registered";
    case WriteMethod::kIoUring:
      return "io_uring";
    case WriteMethod::kDirect:
      return "direct";
    case WriteMethod::kBuffered:
      return "buffered";
  }
  TROUPE_CHECK(false, "write method {}", static_cast<int>(method));
}

std::unique_ptr<IoRing> MakeStreamingRing(std::span<std::byte> memory) {
  auto ring = IoRing::Make(StreamingFile::kSlots);
  if (!ring.ok()) return nullptr;
  // Without registration each write looks up its pages: slower, but correct.
  if (!memory.empty()) (void)(*ring)->Register(memory);
  return *std::move(ring);
}

StatusOr<std::unique_ptr<StreamingFile>> MakeStreamingFile(const std::string& path, int fd,
                                                           const StreamingOptions& options) {
  TROUPE_CHECK(options.size_bytes > 0, "{}", path);
  WriteMethod method = options.best_method;
  if (method != WriteMethod::kBuffered &&
      (!DirectUnitFits(fd) || fcntl(fd, F_SETFL, O_DIRECT) != 0)) {
    method = WriteMethod::kBuffered;
  }
  std::unique_ptr<IoRing> own_ring;
  IoRing* ring = nullptr;
  if (method < WriteMethod::kDirect) {
    ring = options.ring;
    // Completions of an earlier file's writes would be mistaken for this file's.
    if (ring == nullptr || ring->in_flight() > 0) {
      own_ring = MakeStreamingRing({});
      ring = own_ring.get();
    }
    method = ring == nullptr      ? WriteMethod::kDirect
             : ring->registered() ? WriteMethod::kIoUringRegistered
                                  : WriteMethod::kIoUring;
  }
  auto file = std::make_unique<PosixStreamingFile>(path, fd, options.size_bytes, method,
                                                   std::move(own_ring), ring);
  // Allocate the whole file: a full disk is detected at once, and writes within the file's size can
  // be in flight together, while writes beyond its end would wait for each other.
  while (fallocate(fd, 0, 0, RoundedUp(options.size_bytes)) != 0) {
    if (errno == EINTR) continue;
    if (errno == EOPNOTSUPP) break;
    return ErrnoStatus(errno, "allocate " + path);
  }
  return file;
}

}  // namespace troupe
