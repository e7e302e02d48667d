// The directory that all workers mount, as a model: attempts with shards and a manifest, durable
// once written.
#ifndef TROUPE_TESTS_SIMULATION_SHARED_STORAGE_H_
#define TROUPE_TESTS_SIMULATION_SHARED_STORAGE_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>

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

class SharedStorage {
 public:
  explicit SharedStorage(Truth& truth) : truth_(truth) {}

  // A rank's shard is durable from here on. Returns its digest. Ranks of another group epoch in the
  // same directory, or other bytes under a name that exists, break invariant 10.
  std::string WriteShard(const std::string& path, int rank, const StoredShard& shard);
  // Returns the digest of the manifest file.
  std::string WriteManifest(const std::string& path, const v1::CheckpointManifest& manifest);

  // Verifies digests before it believes anything, as a rank does: DATA_LOSS where something is
  // missing or differs.
  StatusOr<Restored> Read(const std::string& path, const std::string& manifest_digest) const;

  // The same of an attempt that is read back; remembers those that it found whole.
  Status Verify(const std::string& path, const std::string& manifest_digest);
  // Whether the attempt was read back and whole then. It may have gone bad since, but for that it
  // still is.
  bool WasFoundWhole(const std::string& path) const { return found_whole_.contains(path); }

  void Delete(const std::string& path) { attempts_.erase(path); }
  bool Exists(const std::string& path) const { return attempts_.contains(path); }
  size_t attempts() const { return attempts_.size(); }

  // A bit of one shard of the attempt flips; false if there is none.
  bool Corrupt(const std::string& path);
  bool IsCorrupt(const std::string& path) const;

 private:
  struct Attempt {
    std::map<std::string, StoredShard> shards;  // by file name
    v1::CheckpointManifest manifest;
    std::string manifest_digest;  // empty: no manifest
  };

  Truth& truth_;
  std::map<std::string, Attempt> attempts_;
  std::set<std::string> found_whole_;  // paths
};

// The name of the file that a rank writes.
std::string ShardName(int rank);

}  // namespace troupe::simulation

#endif  // TROUPE_TESTS_SIMULATION_SHARED_STORAGE_H_
