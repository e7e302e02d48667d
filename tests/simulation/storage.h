// A model of the folders of checkpoints as hosts see them: volumes that hold attempts with shards
// and a manifest, durable once written, and which volume a host has mounted at which folder.
//
// "/shared" is one volume that all hosts mount; "/private" is a different volume on each host. A
// host may lose a mount: then either every access below the folder fails, or the empty mount point
// is a directory on the host's own disk, where everything works but no other host's files are
// visible.
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

// A checkpoint as found in the directories of a volume, for an operator who has lost the catalog.
struct FoundAttempt {
  std::string path;
  std::string digest;
  v1::CheckpointManifest manifest;
  bool whole = false;
};

class Storage {
 public:
  explicit Storage(Truth& truth) : truth_(truth) {}

  // Sets what `host` has mounted at "/shared" from now on.
  void SetMount(const std::string& host, Mount mount);
  Mount MountOf(const std::string& host) const;

  // Returns the folder's identity as `host` sees it; if it has none, sets it to `fresh`.
  // UNAVAILABLE if the mount fails.
  StatusOr<std::string> EstablishFolderId(const std::string& host, const std::string& folder,
                                          const std::string& fresh);
  // Returns OK if `id` is empty or the folder that `host` sees has it; else UNAVAILABLE.
  Status CheckFolderId(const std::string& host, const std::string& folder,
                       const std::string& id) const;
  // Whether `id` is an identity of the shared folder itself, as seen by a host that has it mounted.
  bool IsOfSharedFolder(const std::string& id) const;
  // The tokens by which hosts verify that they see the same folder.
  Status PutToken(const std::string& host, const std::string& folder, const std::string& token);
  bool SeesToken(const std::string& host, const std::string& folder,
                 const std::string& token) const;

  // Writes the shard of a rank on `host`, durable from now on, and returns its digest. `folder_id`:
  // the identity that the job knows its folder by. UNAVAILABLE if the mount fails. Ranks of another
  // group epoch in the same directory, or different bytes under an existing name, break invariant
  // 10.
  StatusOr<std::string> WriteShard(const std::string& host, const std::string& path,
                                   const std::string& folder_id, int rank,
                                   const StoredShard& shard);
  // Returns the digest of the manifest file.
  StatusOr<std::string> WriteManifest(const std::string& host, const std::string& path,
                                      const std::string& folder_id,
                                      const v1::CheckpointManifest& manifest);

  // Reads an attempt and verifies all digests, as a rank on `host` does. DATA_LOSS if something is
  // missing or differs, UNAVAILABLE if the mount fails, NOT_FOUND if the job's directory does not
  // exist either.
  StatusOr<Restored> Read(const std::string& host, const std::string& path,
                          const std::string& manifest_digest) const;
  // Like Read, on a host that has the mount.
  StatusOr<Restored> ReadOfTruth(const std::string& path, const std::string& digest) const;

  // Whether `host` sees these shards of the attempt with the digests with which they were written.
  Status SeesShards(const std::string& host, const std::string& path,
                    const v1::CheckpointManifest& manifest) const;

  // Reads an attempt back on `host`; records attempts found whole.
  Status Verify(const std::string& host, const std::string& path,
                const std::string& manifest_digest);
  // Whether the attempt was read back and found whole. It may have been corrupted since, but is
  // otherwise still whole.
  bool WasFoundWhole(const std::string& path) const { return found_whole_.contains(path); }

  // Has no effect if the mount fails.
  void Delete(const std::string& host, const std::string& path);

  // Whether the shared volume has an attempt in this folder of a job.
  bool HasAttempts(const std::string& directory) const;

  // The attempts on the shared volume of each job with a manifest there, by job.
  std::map<std::string, std::vector<FoundAttempt>> Survey() const;

  // Flips a bit of one shard of the attempt; false if there is none.
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
    std::set<std::string> directories;        // directories of jobs
    std::set<std::string> files;              // identities of the folder, and tokens in it
  };

  // The volume that `host` has mounted at the folder of `path`; empty if it fails.
  std::string VolumeOf(const std::string& host, const std::string& path) const;
  StatusOr<Restored> ReadVolume(const std::string& volume, const std::string& path,
                                const std::string& manifest_digest) const;
  // The volume to write to. A write below "/shared" to another volume breaks invariant 28, unless
  // it has the identity `folder_id`: a job that began on a single host whose mount was lost has its
  // folder there.
  StatusOr<Volume*> VolumeToWrite(const std::string& host, const std::string& path,
                                  const std::string& folder_id);
  const Attempt* FindAttempt(const std::string& volume, const std::string& path) const;

  Truth& truth_;
  std::map<std::string, Volume> volumes_;
  std::map<std::string, Mount> mounts_;  // by host, if not mounted normally
  std::set<std::string> found_whole_;    // paths
};

// The name of the file that a rank writes.
std::string ShardName(int rank);

}  // namespace troupe::simulation

#endif  // TROUPE_TESTS_SIMULATION_STORAGE_H_
