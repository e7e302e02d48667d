// Writes one rank's part of a checkpoint: a safetensors file with slices of global tensors.
#ifndef TROUPE_CHECKPOINT_WRITE_SHARD_WRITER_H_
#define TROUPE_CHECKPOINT_WRITE_SHARD_WRITER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "base/status.h"
#include "checkpoint/format/shard_layout.h"
#include "checkpoint/format/slice.h"
#include "troupe/v1/checkpoint.pb.h"

namespace troupe {

struct ShardTensor {
  GlobalSlice slice;
  // Row-major. Must not change until the write returns.
  std::span<const std::byte> data;
  // Used if `data` is empty, for memory that the host cannot address: copies the bytes from offset
  // `at` into `to`. Any thread may call it.
  std::function<Status(int64_t at, std::span<std::byte> to)> read;
};

// Copies the bytes of `tensor` from offset `at` into `to`.
Status CopyPart(const ShardTensor& tensor, int64_t at, std::span<std::byte> to);

struct ShardWriteOptions {
  // If it becomes true, the write ends with CANCELLED before its next piece. May be null.
  const std::atomic<bool>* stop = nullptr;
  IoRing* ring = nullptr;  // for WriteShardImage: see StreamingOptions
  WriteMethod best_method = WriteMethod::kIoUringRegistered;
  WriteMethod* method = nullptr;  // receives the write method; may be null
};

// Writes `directory`/rank-NNNNN.safetensors durably (base/durable_write.h): each 8 MiB piece is
// gathered, hashed in memory and written. Returns the description with which the rank votes.
//
// ALREADY_EXISTS if the file exists (an attempt is never written twice), RESOURCE_EXHAUSTED if the
// disk is full or memory cannot be allocated, or any other error of the file system. After an error
// the attempt has failed: nothing is retried, and DeleteAttempt removes the directory with its
// contents. REQUIRES: each tensor's `data` has the bytes of its slice, or it has `read`. Failpoints
// checkpoint.shard.*.
StatusOr<v1::ShardFile> WriteShard(FileSystem& files, const std::string& directory, int rank,
                                   const std::vector<ShardTensor>& tensors,
                                   const ShardWriteOptions& options = {});

// The same for a file whose image is already in memory: nothing is copied. REQUIRES: `image` has
// the alignment that StreamingFile requires and layout.bytes bytes, rounded up to that alignment.
StatusOr<v1::ShardFile> WriteShardImage(FileSystem& files, const std::string& directory,
                                        const ShardLayout& layout, std::span<std::byte> image,
                                        const ShardWriteOptions& options = {});

}  // namespace troupe

#endif  // TROUPE_CHECKPOINT_WRITE_SHARD_WRITER_H_
