// A rank's part of a checkpoint as a file in memory: taken while the state stands still, written
// while training changes it.
//
// The memory is laid out once, exactly as the shard file, and used again by every save. Not
// thread-safe: copying and writing follow each other, on whatever threads.
#ifndef TROUPE_CHECKPOINT_SNAPSHOT_H_
#define TROUPE_CHECKPOINT_SNAPSHOT_H_

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/aligned_memory.h"
#include "base/file_system.h"
#include "base/status.h"
#include "checkpoint/shard_layout.h"
#include "checkpoint/shard_writer.h"

namespace troupe {

class Snapshot {
 public:
  // Of `tensors`, whose memory stays where it is as long as the object lives. RESOURCE_EXHAUSTED
  // names the bytes that could not be had. `pin`: prepares the memory for copies by a device as long as its result lives.
  using Pin = std::function<std::shared_ptr<void>(std::span<std::byte>)>;
  static StatusOr<Snapshot> Make(int rank, std::vector<ShardTensor> tensors, const Pin& pin = nullptr);

  // Copies the tensors as they are. CANCELLED, soon, once `stop` is true.
  Status Copy(const std::atomic<bool>& stop);

  // Writes what was copied last. Errors of WriteShardImage.
  StatusOr<v1::ShardFile> Write(FileSystem& files, const std::string& directory,
                                const ShardWriteOptions& options) const;

  int64_t bytes() const { return layout_.bytes; }

 private:
  Snapshot() = default;

  std::vector<ShardTensor> tensors_;
  ShardLayout layout_;
  AlignedMemory image_;
  std::shared_ptr<void> pinned_;  // the image; goes first
  std::unique_ptr<IoRing> ring_;  // knows the image; goes first
};

}  // namespace troupe

#endif  // TROUPE_CHECKPOINT_SNAPSHOT_H_
