// A rank's part of a checkpoint as a file image in memory. It is copied while the state does not
// change and written to disk while training continues.
//
// The memory is laid out once, exactly as the shard file, and every save reuses it. Not
// thread-safe: copies and writes must alternate, on any threads.
#ifndef TROUPE_CHECKPOINT_WRITE_SNAPSHOT_H_
#define TROUPE_CHECKPOINT_WRITE_SNAPSHOT_H_

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
#include "checkpoint/format/shard_layout.h"
#include "checkpoint/write/shard_writer.h"

namespace troupe {

class Snapshot {
 public:
  // Allocates the image for `tensors`, whose memory must stay valid as long as the object lives.
  // RESOURCE_EXHAUSTED states the bytes that could not be allocated. `pin` prepares the memory for
  // copies by a device for as long as its result lives.
  using Pin = std::function<std::shared_ptr<void>(std::span<std::byte>)>;
  static StatusOr<Snapshot> Make(int rank, std::vector<ShardTensor> tensors,
                                 const Pin& pin = nullptr);

  // Copies the current contents of the tensors. CANCELLED soon after `stop` becomes true.
  Status Copy(const std::atomic<bool>& stop);

  // Writes the last copy. Errors: as WriteShardImage.
  StatusOr<v1::ShardFile> Write(FileSystem& files, const std::string& directory,
                                const ShardWriteOptions& options) const;

  int64_t bytes() const { return layout_.bytes; }

 private:
  Snapshot() = default;

  std::vector<ShardTensor> tensors_;
  ShardLayout layout_;
  AlignedMemory image_;
  std::shared_ptr<void> pinned_;  // pins the image; destroyed before it
  std::unique_ptr<IoRing> ring_;  // has the image registered; destroyed before it
};

}  // namespace troupe

#endif  // TROUPE_CHECKPOINT_WRITE_SNAPSHOT_H_
