// `troupe checkpoints diff`: in which tensors do two checkpoints differ, and by how much? Global
// tensors are compared, so that the layouts they were written under do not matter.
#ifndef TROUPE_CHECKPOINT_DIFF_H_
#define TROUPE_CHECKPOINT_DIFF_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "base/status.h"
#include "troupe/v1/checkpoint.pb.h"

namespace troupe {

struct TensorDifference {
  std::string name;
  // Why its elements cannot be compared: "only in the first", "F32 of [4, 6] and F32 of [4, 7]".
  // Empty where they were.
  std::string reason;
  int64_t elements = 0;
  int64_t differing = 0;  // elements whose bits differ
  // False for a dtype of less than 16 bits a number, of which only `differing` is told.
  bool numeric = true;
  double max_absolute = 0;  // |a - b|; infinity where one of them is not finite
  double max_relative = 0;  // |a - b| / max(|a|, |b|)
};

struct CheckpointDifference {
  int64_t tensors = 0;   // compared
  int64_t elements = 0;  // of these
  std::vector<TensorDifference> differing;  // by name

  bool empty() const { return differing.empty(); }
};

// Compares the checkpoints in directories `a` and `b`, whose manifests these are, in blocks of rows:
// at most 96 MiB of either are in memory, more only where one row of a tensor is larger. What is
// read is verified. REQUIRES: validated manifests. Errors as of LoadSlices.
StatusOr<CheckpointDifference> DiffCheckpoints(FileSystem& files, const std::string& a,
                                               const v1::CheckpointManifest& manifest_a,
                                               const std::string& b,
                                               const v1::CheckpointManifest& manifest_b);

}  // namespace troupe

#endif  // TROUPE_CHECKPOINT_DIFF_H_
