#include "tests/simulation/storage.h"

#include <algorithm>

#include "actor/sim/trace.h"

namespace troupe::simulation {
namespace {

constexpr const char* kSharedVolume = "shared";

std::string DigestOf(int64_t step, uint64_t state, uint64_t epoch, bool corrupt) {
  return fmt::format("sim:{}-{:016x}-{}{}", step, state, epoch, corrupt ? "-corrupt" : "");
}

std::string DigestOf(const StoredShard& shard) {
  return DigestOf(shard.step, shard.state, shard.group_epoch, shard.corrupt);
}

// The digest in the format that the catalog requires of a manifest's digest.
std::string DigestOf(const v1::CheckpointManifest& manifest) {
  return fmt::format("sha256:{:064x}", HashBytes(manifest.SerializeAsString()));
}

// "/shared/job-1/step-4" → "/shared/job-1".
std::string Parent(const std::string& path) { return path.substr(0, path.rfind('/')); }

bool IsShared(const std::string& path) { return path == "/shared" || path.starts_with("/shared/"); }

Status CheckShards(const v1::CheckpointManifest& manifest,
                   const std::map<std::string, StoredShard>& shards, const std::string& path) {
  for (const v1::ShardFile& file : manifest.shards()) {
    const auto shard = shards.find(file.name());
    if (shard == shards.end()) return DataLoss("{}: {} is missing", path, file.name());
    if (DigestOf(shard->second) != file.digest()) {
      return DataLoss("{}: {} has digest {}, not {}", path, file.name(), DigestOf(shard->second),
                      file.digest());
    }
    if (shard->second.step != manifest.state().step()) {
      return DataLoss("{}: {} is of step {}, the manifest of step {}", path, file.name(),
                      shard->second.step, manifest.state().step());
    }
  }
  return OkStatus();
}

}  // namespace

std::string ShardName(int rank) { return fmt::format("rank-{}.safetensors", rank); }

void Storage::SetMount(const std::string& host, Mount mount) {
  if (mount == Mount::kThere) {
    mounts_.erase(host);
  } else {
    mounts_[host] = mount;
  }
}

Mount Storage::MountOf(const std::string& host) const {
  const auto lost = mounts_.find(host);
  return lost == mounts_.end() ? Mount::kThere : lost->second;
}

std::string Storage::VolumeOf(const std::string& host, const std::string& path) const {
  if (!IsShared(path)) return "private of " + host;
  switch (MountOf(host)) {
    case Mount::kThere:
      return kSharedVolume;
    case Mount::kFails:
      return {};
    case Mount::kLocal:
      return "mount point of " + host;
  }
  return {};
}

const Storage::Attempt* Storage::FindAttempt(const std::string& volume,
                                             const std::string& path) const {
  const auto there = volumes_.find(volume);
  if (there == volumes_.end()) return nullptr;
  const auto found = there->second.attempts.find(path);
  return found == there->second.attempts.end() ? nullptr : &found->second;
}

StatusOr<Storage::Volume*> Storage::VolumeToWrite(const std::string& host, const std::string& path,
                                                  const std::string& folder_id) {
  const std::string name = VolumeOf(host, path);
  if (name.empty()) return Unavailable("{}: Transport endpoint is not connected", path);
  Volume& volume = volumes_[name];
  const bool own = !folder_id.empty() && volume.files.contains(folder_id);
  truth_.Check(!IsShared(path) || name == kSharedVolume || own, kForeignWrite,
               fmt::format("{} writes {} to its {}", host, path, name));
  volume.directories.insert(Parent(path));
  return &volume;
}

StatusOr<std::string> Storage::EstablishFolderId(const std::string& host, const std::string& folder,
                                                 const std::string& fresh) {
  const std::string name = VolumeOf(host, folder);
  if (name.empty()) return Unavailable("{}: Transport endpoint is not connected", folder);
  std::set<std::string>& files = volumes_[name].files;
  for (const std::string& file : files) {
    if (file.starts_with("id-")) return file;
  }
  files.insert("id-" + fresh);
  return "id-" + fresh;
}

Status Storage::CheckFolderId(const std::string& host, const std::string& folder,
                              const std::string& id) const {
  const std::string name = VolumeOf(host, folder);
  if (name.empty()) return Unavailable("{}: Transport endpoint is not connected", folder);
  const auto volume = volumes_.find(name);
  if (id.empty() || (volume != volumes_.end() && volume->second.files.contains(id))) {
    return OkStatus();
  }
  return Unavailable("{} lacks {}: another disk, or none, is mounted there", folder, id);
}

bool Storage::IsOfSharedFolder(const std::string& id) const {
  const auto shared = volumes_.find(kSharedVolume);
  return shared != volumes_.end() && shared->second.files.contains(id);
}

Status Storage::PutToken(const std::string& host, const std::string& folder,
                         const std::string& token) {
  const std::string name = VolumeOf(host, folder);
  if (name.empty()) return Unavailable("{}: Transport endpoint is not connected", folder);
  volumes_[name].files.insert(token);
  return OkStatus();
}

bool Storage::SeesToken(const std::string& host, const std::string& folder,
                        const std::string& token) const {
  const auto volume = volumes_.find(VolumeOf(host, folder));
  return volume != volumes_.end() && volume->second.files.contains(token);
}

StatusOr<std::string> Storage::WriteShard(const std::string& host, const std::string& path,
                                          const std::string& folder_id, int rank,
                                          const StoredShard& shard) {
  TROUPE_ASSIGN_OR_RETURN(Volume* const volume, VolumeToWrite(host, path, folder_id));
  Attempt& attempt = volume->attempts[path];
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

StatusOr<std::string> Storage::WriteManifest(const std::string& host, const std::string& path,
                                             const std::string& folder_id,
                                             const v1::CheckpointManifest& manifest) {
  TROUPE_ASSIGN_OR_RETURN(Volume* const volume, VolumeToWrite(host, path, folder_id));
  Attempt& attempt = volume->attempts[path];
  attempt.manifest = manifest;
  attempt.manifest_digest = DigestOf(manifest);
  return attempt.manifest_digest;
}

StatusOr<Restored> Storage::ReadVolume(const std::string& volume, const std::string& path,
                                       const std::string& manifest_digest) const {
  if (volume.empty()) return Unavailable("{}: Transport endpoint is not connected", path);
  const Attempt* const attempt = FindAttempt(volume, path);
  if (attempt == nullptr || attempt->manifest_digest.empty()) {
    const auto there = volumes_.find(volume);
    if (there == volumes_.end() || !there->second.directories.contains(Parent(path))) {
      return NotFound("{}: there is no directory {}", path, Parent(path));
    }
    return DataLoss("{} has no manifest", path);
  }
  if (attempt->manifest_digest != manifest_digest) {
    return DataLoss("{}: the manifest's digest is {}, not {}", path, attempt->manifest_digest,
                    manifest_digest);
  }
  const v1::CheckpointManifest& manifest = attempt->manifest;
  const int ranks = std::max(1, manifest.layout().pipe()) *
                    std::max(1, manifest.layout().data_replicate()) *
                    std::max(1, manifest.layout().tensor());
  if (manifest.shards_size() != ranks) {
    return DataLoss("{}: the manifest lists {} shards of {} ranks", path, manifest.shards_size(),
                    ranks);
  }
  TROUPE_RETURN_IF_ERROR(CheckShards(manifest, attempt->shards, path));
  const StoredShard& one = attempt->shards.at(manifest.shards(0).name());
  return Restored{one.step, one.state};
}

StatusOr<Restored> Storage::Read(const std::string& host, const std::string& path,
                                 const std::string& manifest_digest) const {
  return ReadVolume(VolumeOf(host, path), path, manifest_digest);
}

StatusOr<Restored> Storage::ReadOfTruth(const std::string& path, const std::string& digest) const {
  return ReadVolume(kSharedVolume, path, digest);
}

Status Storage::SeesShards(const std::string& host, const std::string& path,
                           const v1::CheckpointManifest& manifest) const {
  const std::string volume = VolumeOf(host, path);
  if (volume.empty()) return Unavailable("{}: Transport endpoint is not connected", path);
  const Attempt* const attempt = FindAttempt(volume, path);
  if (attempt == nullptr) return NotFound("{}: there is no such directory", path);
  return CheckShards(manifest, attempt->shards, path);
}

Status Storage::Verify(const std::string& host, const std::string& path,
                       const std::string& manifest_digest) {
  const std::string volume = VolumeOf(host, path);
  // If the job's directory is missing the folder may just not be mounted here.
  if (!volume.empty() && FindAttempt(volume, path) == nullptr) {
    return NotFound("{}: there is no such directory", path);
  }
  const Status found = ReadVolume(volume, path, manifest_digest).status();
  if (found.ok()) found_whole_.insert(path);
  return found;
}

void Storage::Delete(const std::string& host, const std::string& path) {
  const std::string volume = VolumeOf(host, path);
  if (!volume.empty()) volumes_[volume].attempts.erase(path);
}

bool Storage::HasAttempts(const std::string& directory) const {
  const auto shared = volumes_.find(kSharedVolume);
  if (shared == volumes_.end()) return false;
  const auto& attempts = shared->second.attempts;
  return std::any_of(attempts.begin(), attempts.end(),
                     [&](const auto& attempt) { return Parent(attempt.first) == directory; });
}

std::map<std::string, std::vector<FoundAttempt>> Storage::Survey() const {
  std::map<std::string, std::vector<FoundAttempt>> found;
  const auto shared = volumes_.find(kSharedVolume);
  if (shared == volumes_.end()) return found;
  for (const auto& [path, attempt] : shared->second.attempts) {
    if (attempt.manifest_digest.empty()) continue;
    const bool whole = ReadVolume(kSharedVolume, path, attempt.manifest_digest).ok();
    found[attempt.manifest.job()].push_back(
        {path, attempt.manifest_digest, attempt.manifest, whole});
  }
  return found;
}

bool Storage::Corrupt(const std::string& path) {
  bool any = false;
  for (auto& [name, volume] : volumes_) {
    const auto found = volume.attempts.find(path);
    if (found == volume.attempts.end() || found->second.shards.empty()) continue;
    found->second.shards.begin()->second.corrupt = true;
    any = true;
  }
  return any;
}

bool Storage::IsCorrupt(const std::string& path) const {
  for (const auto& [name, volume] : volumes_) {
    const Attempt* const attempt = FindAttempt(name, path);
    if (attempt == nullptr) continue;
    for (const auto& [file, shard] : attempt->shards) {
      if (shard.corrupt) return true;
    }
  }
  return false;
}

}  // namespace troupe::simulation
