// A file that is written once, in large aligned pieces of which several are on their way at a time:
// past the page cache where the file system allows it.
//
// Life: FileSystem::CreateStreaming, StartWrite as often as there are pieces, Finish, Close. After
// an error the file is only fit to be destroyed; the destructor waits for what is on its way and
// closes without syncing. Not thread-safe.
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

// How the bytes get to the disk, best first.
enum class WriteMethod {
  kIoUringRegistered,  // O_DIRECT, several writes in flight in the kernel, which knows their memory
  kIoUring,            // the same, the memory looked up for each: beyond the limit on locked memory
  kDirect,             // O_DIRECT, one write after the other: where io_uring is refused
  kBuffered,           // through the page cache: where the file system has no O_DIRECT
};

// "io_uring_registered", "io_uring", "direct", "buffered".
std::string_view Name(WriteMethod method);

// Addresses, offsets and sizes of the pieces are multiples of this.
inline constexpr int64_t kStreamAlignment = 4096;

class StreamingFile {
 public:
  // How many writes may be on their way, each in a slot of its own.
  static constexpr int kSlots = 4;

  virtual ~StreamingFile() = default;

  virtual WriteMethod method() const = 0;

  // Begins to write all of `bytes` at `offset`, once the slot's former write is done; its error, or
  // that of the new write, is returned by this or by a later call. `bytes` must not change before
  // Wait(slot) or Finish. REQUIRES: 0 <= slot < kSlots; alignment as above; what is written lies
  // within the size that the file was created for, rounded up to the alignment.
  virtual Status StartWrite(int slot, int64_t offset, std::span<const std::byte> bytes) = 0;

  // Returns when the slot's write is done.
  virtual Status Wait(int slot) = 0;

  // Waits for all writes, cuts the file to the size that it was created for and returns once all of
  // it is on the disk. After a failure the file is lost: never call it again.
  virtual Status Finish() = 0;

  // Closes and reports a late error. REQUIRES: Finish returned OK.
  virtual Status Close() = 0;
};

struct StreamingOptions {
  int64_t size_bytes = 0;  // of the finished file
  // To write through; outlives the file, and nothing else uses it meanwhile. Null: one of its own.
  IoRing* ring = nullptr;
  // Not better than this one; kDirect and kBuffered leave the ring unused.
  WriteMethod best_method = WriteMethod::kIoUringRegistered;
};

// A ring for files whose pieces lie in `memory`, one file after the other. The kernel is told of
// the memory once, as far as the limit on locked memory allows. Null where the kernel has no
// io_uring.
std::unique_ptr<IoRing> MakeStreamingRing(std::span<std::byte> memory);

// Creates `path` exclusively, in the operating system. ALREADY_EXISTS if there is anything of that
// name, RESOURCE_EXHAUSTED where the disk has no room for it.
StatusOr<std::unique_ptr<StreamingFile>> CreateStreamingFile(const std::string& path,
                                                             const StreamingOptions& options);

}  // namespace troupe

#endif  // TROUPE_BASE_STREAMING_FILE_H_
