#include "checkpoint/read/shard_presence.h"

#include <utility>

#include "checkpoint/format/manifest.h"
#include "checkpoint/format/safetensors.h"

namespace troupe {
namespace {

Status SeeShard(FileSystem& files, const std::string& directory, const v1::ShardFile& shard) {
  const std::string path = JoinPath(directory, shard.name());
  TROUPE_ASSIGN_OR_RETURN(const auto file, files.Open(path, SymbolicLinks::kRefuse));
  if (file->size() != shard.bytes()) {
    return DataLoss("{}: size {} is not {}, the size that was written", path, file->size(),
                    shard.bytes());
  }
  TROUPE_ASSIGN_OR_RETURN(const SafetensorsHeader header, ReadSafetensorsHeader(*file));
  const Status match = MatchHeader(shard, header);
  return match.ok() ? match : DataLoss("{}: {}", path, Message(match));
}

}  // namespace

std::vector<UnseenShard> FindUnseenShards(FileSystem& files, const std::string& directory,
                                          const v1::CheckpointManifest& manifest) {
  std::vector<UnseenShard> unseen;
  for (int i = 0; i < manifest.shards_size(); ++i) {
    Status seen = SeeShard(files, directory, manifest.shards(i));
    if (!seen.ok()) unseen.push_back({i, std::move(seen)});
  }
  return unseen;
}

std::vector<UnseenShard> WaitForShards(FileSystem& files, const std::string& directory,
                                       const v1::CheckpointManifest& manifest,
                                       const Patience& patience) {
  std::vector<UnseenShard> unseen;
  TryUntil(patience, [&] {
    unseen = FindUnseenShards(files, directory, manifest);
    return unseen.empty();
  });
  return unseen;
}

}  // namespace troupe
