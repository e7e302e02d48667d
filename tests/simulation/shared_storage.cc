#include "tests/simulation/shared_storage.h"

#include "actor/sim/trace.h"

namespace troupe::simulation {
namespace {

std::string DigestOf(int64_t step, uint64_t state, uint64_t epoch, bool corrupt) {
  return fmt::format("sim:{}-{:016x}-{}{}", step, state, epoch, corrupt ? "-corrupt" : "");
}

std::string DigestOf(const StoredShard& shard) {
  return DigestOf(shard.step, shard.state, shard.group_epoch, shard.corrupt);
}

}  // namespace

std::string ShardName(int rank) { return fmt::format("rank-{}.safetensors", rank); }

std::string SharedStorage::WriteShard(const std::string& path, int rank, const StoredShard& shard) {
  Attempt& attempt = attempts_[path];
  for (const auto& [name, other] : attempt.shards) {
    truth_.Check(other.group_epoch == shard.group_epoch, 10,
                 fmt::format("{} has shards of group epochs {} and {}", path, other.group_epoch,
                             shard.group_epoch));
  }
  const auto [found, added] = attempt.shards.emplace(ShardName(rank), shard);
  if (!added) {
    truth_.Check(
        DigestOf(found->second) == DigestOf(shard), 10,
        fmt::format("{} of {} is written a second time with other bytes", ShardName(rank), path));
  }
  return DigestOf(shard);
}

std::string SharedStorage::WriteManifest(const std::string& path,
                                         const v1::CheckpointManifest& manifest) {
  Attempt& attempt = attempts_[path];
  attempt.manifest = manifest;
  attempt.manifest_digest = fmt::format("sim:{:016x}", HashBytes(manifest.SerializeAsString()));
  return attempt.manifest_digest;
}

StatusOr<Restored> SharedStorage::Read(const std::string& path,
                                       const std::string& manifest_digest) const {
  const auto found = attempts_.find(path);
  if (found == attempts_.end()) return DataLoss("{} does not exist", path);
  const Attempt& attempt = found->second;
  if (attempt.manifest_digest.empty()) return DataLoss("{} has no manifest", path);
  if (attempt.manifest_digest != manifest_digest) {
    return DataLoss("{}: the manifest's digest is {}, not {}", path, attempt.manifest_digest,
                    manifest_digest);
  }
  const v1::CheckpointManifest& manifest = attempt.manifest;
  const int ranks = std::max(1, manifest.layout().pipe()) *
                    std::max(1, manifest.layout().data_replicate()) *
                    std::max(1, manifest.layout().tensor());
  if (manifest.shards_size() != ranks) {
    return DataLoss("{}: the manifest lists {} shards of {} ranks", path, manifest.shards_size(),
                    ranks);
  }
  Restored restored;
  for (const v1::ShardFile& file : manifest.shards()) {
    const auto shard = attempt.shards.find(file.name());
    if (shard == attempt.shards.end()) return DataLoss("{}: {} is missing", path, file.name());
    if (DigestOf(shard->second) != file.digest()) {
      return DataLoss("{}: {} has digest {}, not {}", path, file.name(), DigestOf(shard->second),
                      file.digest());
    }
    if (shard->second.step != manifest.state().step()) {
      return DataLoss("{}: {} is of step {}, the manifest of step {}", path, file.name(),
                      shard->second.step, manifest.state().step());
    }
    restored = {shard->second.step, shard->second.state};
  }
  return restored;
}

Status SharedStorage::Verify(const std::string& path, const std::string& manifest_digest) {
  const Status found = Read(path, manifest_digest).status();
  if (found.ok()) found_whole_.insert(path);
  return found;
}

bool SharedStorage::Corrupt(const std::string& path) {
  const auto found = attempts_.find(path);
  if (found == attempts_.end() || found->second.shards.empty()) return false;
  found->second.shards.begin()->second.corrupt = true;
  return true;
}

bool SharedStorage::IsCorrupt(const std::string& path) const {
  const auto found = attempts_.find(path);
  if (found == attempts_.end()) return false;
  for (const auto& [name, shard] : found->second.shards) {
    if (shard.corrupt) return true;
  }
  return false;
}

}  // namespace troupe::simulation
