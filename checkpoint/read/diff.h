// Compares two checkpoints for `troupe checkpoints diff`: which tensors differ, and by how much. It
// compares global tensors, so the layouts under which the checkpoints were written do not matter.
#ifndef TROUPE_CHECKPOINT_READ_DIFF_H_
#define TROUPE_CHECKPOINT_READ_DIFF_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "base/status.h"
#include "troupe/v1/checkpoint.pb.h"

namespace troupe {

struct TensorDifference {
  std::string name;
  // The reason why the elements cannot be compared: "only in the first", "F32 of [4, 6] in the
  // first, F32 of [4, 7] in the second". Empty if they were compared.
  std::string reason;
  int64_t elements = 0;
  int64_t differing = 0;  // elements with different bits
  // False for a dtype of fewer than 16 bits per element, for which only `differing` is reported.
  bool numeric = true;
  double max_absolute = 0;  // |a - b|; infinity if one of them is not finite
  double max_relative = 0;  // |a - b| / max(|a|, |b|)
};

struct CheckpointDifference {
  int64_t tensors = 0;                      // compared tensors
  int64_t elements = 0;                     // elements of the compared tensors
  std::vector<TensorDifference> differing;  // sorted by name

  bool empty() const { return differing.empty(); }
};

// Compares the checkpoints in directories `a` and `b` with the manifests `manifest_a` and
// `manifest_b`, block of rows by block of rows. At most 96 MiB of each checkpoint are in memory, or
// one row of a tensor if that is larger. All data read are verified. REQUIRES: validated manifests.
// Errors: as LoadSlices.
StatusOr<CheckpointDifference> DiffCheckpoints(FileSystem& files, const std::string& a,
                                               const v1::CheckpointManifest& manifest_a,
                                               const std::string& b,
                                               const v1::CheckpointManifest& manifest_b);

}  // namespace troupe

#endif  // TROUPE_CHECKPOINT_READ_DIFF_H_
