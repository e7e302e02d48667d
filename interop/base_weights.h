// The weights of a model that frozen parameters take their numbers from: a Hugging Face directory,
// or a checkpoint, which may have a base in turn.
#ifndef TROUPE_INTEROP_BASE_WEIGHTS_H_
#define TROUPE_INTEROP_BASE_WEIGHTS_H_

#include <set>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/file_system.h"
#include "base/status.h"
#include "checkpoint/read/shard_reader.h"
#include "interop/hf_weights.h"
#include "troupe/v1/checkpoint.pb.h"
#include "troupe/v1/data.pb.h"

namespace troupe {

// The keys of a job that name a base.
inline constexpr char kBaseDirectory[] = "model.from";
inline constexpr char kBaseCheckpoint[] = "checkpoint.initial_load";

// The files of both kinds of bases; they may be the same.
struct BaseFiles {
  FileSystem& imports;      // Hugging Face directories
  FileSystem& checkpoints;  // must outlive BaseWeights
};

// Thread-safe once open.
class BaseWeights {
 public:
  // Opens the model at `path` and the bases below it, of which there may be 15. `key`: the job's
  // key that names the path: kBaseDirectory, or that of a checkpoint. FAILED_PRECONDITION if a base
  // of a checkpoint is not the one that the checkpoint names; otherwise errors of ReadManifest and
  // HfWeights::Open.
  static StatusOr<BaseWeights> Open(const BaseFiles& files, const std::string& key,
                                    const std::string& path);

  // That of the model at `path`; its own bases are part of a checkpoint's manifest.
  const v1::BaseIdentity& identity() const { return identity_; }

  // Fills the targets, slices of float32, from the model and, where it lacks a tensor, from its
  // bases. NOT_FOUND if none of them has it; otherwise errors of LoadSlices and HfWeights::Read.
  Status Load(std::span<const LoadTarget> targets) const;

 private:
  struct Checkpoint {
    FileSystem* files;
    std::string directory;
    v1::CheckpointManifest manifest;
    std::set<std::string> tensors;

    bool Has(const LoadTarget& target) const { return tensors.contains(target.slice.name); }
  };

  BaseWeights() = default;
  // Adds the manifest's file to `identity`, whose path it opens.
  static StatusOr<Checkpoint> OpenCheckpoint(FileSystem& files, v1::BaseIdentity* identity);

  v1::BaseIdentity identity_;
  std::vector<std::variant<Checkpoint, HfWeights>> layers_;  // each is the base of the one before
};

// FAILED_PRECONDITION if two identities differ; it names the model and its files on both sides.
// `wanted_by`, `found_by`: who has them, "the job began with", "host a has".
Status CheckSameBase(const v1::BaseIdentity& wanted, const std::string& wanted_by,
                     const v1::BaseIdentity& found, const std::string& found_by);

}  // namespace troupe

#endif  // TROUPE_INTEROP_BASE_WEIGHTS_H_
