// Checks that one host sees every shard of an attempt before a manifest states that they exist.
// Each rank voted for the file that its own host wrote, and the same path may be a different folder
// on another host.
#ifndef TROUPE_CHECKPOINT_READ_SHARD_PRESENCE_H_
#define TROUPE_CHECKPOINT_READ_SHARD_PRESENCE_H_

#include <vector>

#include "base/file_system.h"
#include "base/status.h"
#include "checkpoint/write/patience.h"
#include "troupe/v1/checkpoint.pb.h"

namespace troupe {

struct UnseenShard {
  int shard = 0;  // index in the manifest
  Status status;  // the reason: NOT_FOUND, or DATA_LOSS if size or header differ from the vote
};

// Returns the shards of `manifest` that are not in `directory` with the size of the vote and a
// header that describes their tensors. Empty if all are seen. Reads only headers.
std::vector<UnseenShard> FindUnseenShards(FileSystem& files, const std::string& directory,
                                          const v1::CheckpointManifest& manifest);

// Repeats FindUnseenShards until all shards are seen or `patience` has ended.
std::vector<UnseenShard> WaitForShards(FileSystem& files, const std::string& directory,
                                       const v1::CheckpointManifest& manifest,
                                       const Patience& patience);

}  // namespace troupe

#endif  // TROUPE_CHECKPOINT_READ_SHARD_PRESENCE_H_
