// Is everything that was committed still there? For `troupe checkpoints verify`, and before
// retention deletes what a commit supersedes.
#ifndef TROUPE_CHECKPOINT_VERIFY_H_
#define TROUPE_CHECKPOINT_VERIFY_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_system.h"
#include "base/status.h"

namespace troupe {

struct VerifyFailure {
  std::string file;  // within the directory
  // "tensors a, b", all of the damaged block; "the header"; empty where the whole file is
  // concerned.
  std::string tensors;
  std::string reason;
  // DATA_LOSS: damaged. Any other: it could not be read, which says nothing about what is in it.
  StatusCode code = StatusCode::kDataLoss;
};

struct VerifyReport {
  int64_t step = 0;
  int64_t bytes = 0;  // read
  int files = 0;
  std::vector<VerifyFailure> failures;

  // OK, or the code of the first failure (of the first damage if there is any) with its file,
  // tensors and reason and the number of the others.
  Status ToStatus() const;
};

// Reads every byte of the checkpoint in `directory`: the manifest (against `manifest_digest` unless
// empty), each file's size, block checksums, whole digest, and its header against the manifest.
// Goes on after a failure, so that the report names all of them; at most one a file and block.
// What is large is read from the disk itself where the file system can, not from the kernel's
// cache. Gives up soon, with a CANCELLED failure, once `stop` is true.
VerifyReport VerifyCheckpoint(FileSystem& files, const std::string& directory,
                              std::string_view manifest_digest,
                              const std::atomic<bool>* stop = nullptr);

}  // namespace troupe

#endif  // TROUPE_CHECKPOINT_VERIFY_H_
