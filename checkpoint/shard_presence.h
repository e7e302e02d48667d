// Whether one host sees every shard of an attempt before a manifest says that they are there: each
// rank voted for the file that its own host wrote, in what may be another folder of the same path.
#ifndef TROUPE_CHECKPOINT_SHARD_PRESENCE_H_
#define TROUPE_CHECKPOINT_SHARD_PRESENCE_H_

#include <vector>

#include "base/file_system.h"
#include "base/status.h"
#include "checkpoint/patience.h"
#include "troupe/v1/checkpoint.pb.h"

namespace troupe {

struct UnseenShard {
  int shard = 0;  // index in the manifest
  Status status;  // why: NOT_FOUND, or DATA_LOSS for another size or header than was voted for
};

// The shards of `manifest` that are not in `directory`, in the size that was voted for and with a
// header that describes their tensors; empty: all are seen. Headers alone are read.
std::vector<UnseenShard> FindUnseenShards(FileSystem& files, const std::string& directory,
                                          const v1::CheckpointManifest& manifest);

// The same, once all are seen or patience has ended.
std::vector<UnseenShard> WaitForShards(FileSystem& files, const std::string& directory,
                                       const v1::CheckpointManifest& manifest,
                                       const Patience& patience);

}  // namespace troupe

#endif  // TROUPE_CHECKPOINT_SHARD_PRESENCE_H_
