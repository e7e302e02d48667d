// Writes one rank's part of a checkpoint: a safetensors file of slices of global tensors.
#ifndef TROUPE_CHECKPOINT_SHARD_WRITER_H_
#define TROUPE_CHECKPOINT_SHARD_WRITER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "base/status.h"
#include "checkpoint/shard_layout.h"
#include "checkpoint/slice.h"
#include "troupe/v1/checkpoint.pb.h"

namespace troupe {

struct ShardTensor {
  GlobalSlice slice;
  // Row-major; must not change until the write returns.
  std::span<const std::byte> data;
  // Where `data` is empty: copies the bytes from `at` on to `to`, from where the host's memory does not reach. May be called
  // by any thread.
  std::function<Status(int64_t at, std::span<std::byte> to)> read;
};

// The bytes of `tensor` from `at` on.
Status CopyPart(const ShardTensor& tensor, int64_t at, std::span<std::byte> to);

struct ShardWriteOptions {
  // Once true the write ends with CANCELLED before its next piece. May be null.
  const std::atomic<bool>* stop = nullptr;
  IoRing* ring = nullptr;  // WriteShardImage: see StreamingOptions
  WriteMethod best_method = WriteMethod::kIoUringRegistered;
  WriteMethod* method = nullptr;  // how it was written; may be null
};

// Writes `directory`/rank-NNNNN.safetensors: temporary file created exclusively → each 8 MiB piece
// gathered, hashed in memory, written → fdatasync → rename → fsync of the directory. Returns what
// the rank votes with; durable then.
//
// ALREADY_EXISTS if the file is there (an attempt is never written twice), RESOURCE_EXHAUSTED on a
// full disk, any other error of the file system. After an error the attempt is dead: nothing is
// retried, and what lies in the directory is removed with it (DeleteAttempt). REQUIRES: each `data`
// has the bytes of its slice, or there is `read`. Failpoints checkpoint.shard.*.
StatusOr<v1::ShardFile> WriteShard(FileSystem& files, const std::string& directory, int rank,
                                   const std::vector<ShardTensor>& tensors,
                                   const ShardWriteOptions& options = {});

// The same for a file that lies in memory as it is to be on the disk: nothing is copied. REQUIRES:
// `image` is aligned as StreamingFile wants it and has layout.bytes, rounded up to that alignment.
StatusOr<v1::ShardFile> WriteShardImage(FileSystem& files, const std::string& directory,
                                        const ShardLayout& layout, std::span<std::byte> image,
                                        const ShardWriteOptions& options = {});

}  // namespace troupe

#endif  // TROUPE_CHECKPOINT_SHARD_WRITER_H_
