// A file that is written once, in large aligned pieces with several writes in flight. It bypasses
// the page cache where the file system allows it.
//
// Life cycle: FileSystem::CreateStreaming, StartWrite once per piece, Finish, Close. After an error
// the file can only be destroyed; the destructor waits for writes in flight and closes without
// syncing. Not thread-safe.
#ifndef TROUPE_BASE_STREAMING_FILE_H_
#define TROUPE_BASE_STREAMING_FILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/io_ring.h"
#include "base/status.h"

namespace troupe {

// The write methods, best first.
enum class WriteMethod {
  kIoUringRegistered,  // O_DIRECT, several writes in flight from registered memory
  kIoUring,            // the same without registered memory: beyond the limit on locked memory
  kDirect,             // O_DIRECT, one write at a time: where io_uring is not permitted
  kBuffered,           // through the page cache: where the file system has no O_DIRECT
};

// Returns "io_uring_registered", "io_uring", "direct" or "buffered".
std::string_view Name(WriteMethod method);

// The addresses, offsets and sizes of the pieces are multiples of this number of bytes.
inline constexpr int64_t kStreamAlignment = 4096;

class StreamingFile {
 public:
  // The number of writes that may be in flight, each in its own slot.
  static constexpr int kSlots = 4;

  virtual ~StreamingFile() = default;

  virtual WriteMethod method() const = 0;

  // Starts to write all of `bytes` at `offset`, after the slot's previous write has completed. This
  // call or a later one returns the error of the previous or of the new write. `bytes` must not
  // change before Wait(slot) or Finish. REQUIRES: 0 <= slot < kSlots; alignment as above; the write
  // ends within the size for which the file was created, rounded up to the alignment.
  virtual Status StartWrite(int slot, int64_t offset, std::span<const std::byte> bytes) = 0;

  // Waits until the slot's write has completed.
  virtual Status Wait(int slot) = 0;

  // Waits for all writes, truncates the file to the size for which it was created and returns once
  // all of it is on the disk. After a failure the file is lost: do not call Finish again.
  virtual Status Finish() = 0;

  // Closes the file and reports a delayed error. REQUIRES: Finish returned OK.
  virtual Status Close() = 0;
};

struct StreamingOptions {
  int64_t size_bytes = 0;  // size of the finished file
  // The ring to write through. It must outlive the file, and nothing else may use it meanwhile. If
  // null, the file creates its own.
  IoRing* ring = nullptr;
  // Use this method or a lesser one; kDirect and kBuffered do not use the ring.
  WriteMethod best_method = WriteMethod::kIoUringRegistered;
};

// Creates a ring for files that are written one after another from pieces in `memory`. The memory
// is registered with the kernel once, as far as the limit on locked memory allows. Null if the
// kernel has no io_uring.
std::unique_ptr<IoRing> MakeStreamingRing(std::span<std::byte> memory);

// Returns a streaming file that owns the descriptor `fd` of a new, empty file; `path` is named in
// errors. RESOURCE_EXHAUSTED if the disk has no room for the file.
StatusOr<std::unique_ptr<StreamingFile>> MakeStreamingFile(const std::string& path, int fd,
                                                           const StreamingOptions& options);

}  // namespace troupe

#endif  // TROUPE_BASE_STREAMING_FILE_H_
