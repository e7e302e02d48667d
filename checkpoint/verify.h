// `troupe checkpoints verify`: is everything that was committed still there?
#ifndef TROUPE_CHECKPOINT_VERIFY_H_
#define TROUPE_CHECKPOINT_VERIFY_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_system.h"
#include "base/status.h"

namespace troupe {

struct VerifyFailure {
  std::string file;     // within the directory
  // "tensors a, b", all of the damaged block; "the header"; empty where the whole file is concerned.
  std::string tensors;
  std::string reason;
};

struct VerifyReport {
  int64_t step = 0;
  int64_t bytes = 0;  // read
  int files = 0;
  std::vector<VerifyFailure> failures;

  // OK, or DATA_LOSS with file, tensors and reason of the first failure and the number of the
  // others.
  Status ToStatus() const;
};

// Reads every byte of the checkpoint in `directory`: the manifest (against `manifest_digest` unless
// empty), each file's size, block checksums, whole digest, and its header against the manifest.
// Goes on after a failure, so that the report names all of them; at most one a file and block.
VerifyReport VerifyCheckpoint(FileSystem& files, const std::string& directory,
                              std::string_view manifest_digest);

}  // namespace troupe

#endif  // TROUPE_CHECKPOINT_VERIFY_H_
