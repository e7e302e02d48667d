// What hosts see in the folders of checkpoints, as a model: volumes that hold attempts with shards
// and a manifest, durable once written, and which volume a host has under which folder.
//
// "/shared" is one volume that all hosts mount; "/private" is another one on each host. A host may
// lose a mount: then what is under the folder fails, or the empty mount point is a directory of the
// host's own disk, in which everything works and nothing of the others is seen.
#ifndef TROUPE_TESTS_SIMULATION_STORAGE_H_
#define TROUPE_TESTS_SIMULATION_STORAGE_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "tests/simulation/truth.h"
#include "troupe/v1/checkpoint.pb.h"

namespace troupe::simulation {

struct StoredShard {
  int64_t step = 0;
  uint64_t state = 0;
  uint64_t group_epoch = 0;
  bool corrupt = false;
};

struct Restored {
  int64_t step = 0;
  uint64_t state = 0;
};

enum class Mount {
  kThere,
  kFails,  // every access fails
  kLocal,  // the mount point on the host's own disk
};

// A checkpoint as the directories of a volume show it, for whoever has lost the catalog.
struct FoundAttempt {
  std::string path;
  std::string digest;
  v1::CheckpointManifest manifest;
  bool whole = false;
};

class Storage {
 public:
  explicit Storage(Truth& truth) : truth_(truth) {}

  // What `host` has under "/shared" from now on.
  void SetMount(const std::string& host, Mount mount);
  Mount MountOf(const std::string& host) const;

  // An identity of the folder as `host` sees it: the one that it has, or `fresh`, which it is
  // given. UNAVAILABLE where the mount fails.
  StatusOr<std::string> EstablishFolderId(const std::string& host, const std::string& folder,
                                          const std::string& fresh);
  // OK if `id` is empty or what `host` sees under the folder has it; else UNAVAILABLE.
  Status CheckFolderId(const std::string& host, const std::string& folder,
                       const std::string& id) const;
  // Whether it is an identity of the shared folder itself, as who has it mounted sees it.
  bool IsOfSharedFolder(const std::string& id) const;
  // The tokens by which hosts show one another that they see the same folder.
  Status PutToken(const std::string& host, const std::string& folder, const std::string& token);
  bool SeesToken(const std::string& host, const std::string& folder,
                 const std::string& token) const;

  // A rank on `host` writes its shard, which is durable from here on. Returns its digest;
  // UNAVAILABLE where the mount fails. Ranks of another group epoch in the same directory, or other
  // bytes under a name that exists, break invariant 10.
  StatusOr<std::string> WriteShard(const std::string& host, const std::string& path, int rank,
                                   const StoredShard& shard);
  // Returns the digest of the manifest file.
  StatusOr<std::string> WriteManifest(const std::string& host, const std::string& path,
                                      const v1::CheckpointManifest& manifest);

  // Verifies digests before it believes anything, as a rank on `host` does: DATA_LOSS where
  // something is missing or differs, UNAVAILABLE where the mount fails, NOT_FOUND where there is
  // not even the directory of the job.
  StatusOr<Restored> Read(const std::string& host, const std::string& path,
                          const std::string& manifest_digest) const;
  // As Read on a host whose mount is there.
  StatusOr<Restored> ReadOfTruth(const std::string& path, const std::string& digest) const;

  // Whether `host` sees these shards of the attempt, as the digests say they were written.
  Status SeesShards(const std::string& host, const std::string& path,
                    const v1::CheckpointManifest& manifest) const;

  // Reads an attempt back on `host`; remembers those that it found whole.
  Status Verify(const std::string& host, const std::string& path,
                const std::string& manifest_digest);
  // Whether the attempt was read back and whole then. It may have gone bad since, but for that it
  // still is.
  bool WasFoundWhole(const std::string& path) const { return found_whole_.contains(path); }

  // Without effect where the mount fails.
  void Delete(const std::string& host, const std::string& path);

  // Whether the shared volume holds an attempt in this folder of a job.
  bool HasAttempts(const std::string& directory) const;

  // What the shared volume holds of each job that has a manifest there, by job.
  std::map<std::string, std::vector<FoundAttempt>> Survey() const;

  // A bit of one shard of the attempt flips; false if there is none.
  bool Corrupt(const std::string& path);
  bool IsCorrupt(const std::string& path) const;

 private:
  struct Attempt {
    std::map<std::string, StoredShard> shards;  // by file name
    v1::CheckpointManifest manifest;
    std::string manifest_digest;  // empty: no manifest
  };
  struct Volume {
    std::map<std::string, Attempt> attempts;  // by path
    std::set<std::string> directories;        // of jobs
    std::set<std::string> files;              // identities of the folder, and tokens in it
  };

  // The volume that `host` has under the folder of `path`; empty: it fails.
  std::string VolumeOf(const std::string& host, const std::string& path) const;
  StatusOr<Restored> ReadVolume(const std::string& volume, const std::string& path,
                                const std::string& manifest_digest) const;
  // The volume to write to. A write to what is not the folder's own volume breaks invariant 28.
  StatusOr<Volume*> VolumeToWrite(const std::string& host, const std::string& path);
  const Attempt* FindAttempt(const std::string& volume, const std::string& path) const;

  Truth& truth_;
  std::map<std::string, Volume> volumes_;
  std::map<std::string, Mount> mounts_;  // by host, where it is not there
  std::set<std::string> found_whole_;    // paths
};

// The name of the file that a rank writes.
std::string ShardName(int rank);

}  // namespace troupe::simulation

#endif  // TROUPE_TESTS_SIMULATION_STORAGE_H_
