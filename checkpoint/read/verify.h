// Verifies that all committed data still exist and are intact. `troupe checkpoints verify` uses it,
// and so does retention before it deletes the commits that a newer one supersedes.
#ifndef TROUPE_CHECKPOINT_READ_VERIFY_H_
#define TROUPE_CHECKPOINT_READ_VERIFY_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_system.h"
#include "base/status.h"

namespace troupe {

struct VerifyFailure {
  std::string file;  // file name in the directory
  // "tensors a, b", all tensors in the damaged block, or "the header". Empty if the failure
  // concerns the whole file.
  std::string tensors;
  std::string few_tensors;  // the same with at most kNamesInErrors names, "tensors a and 7 more"
  std::string reason;
  // DATA_LOSS: the file is damaged. Any other code: the file could not be read, and its contents
  // are unknown.
  StatusCode code = StatusCode::kDataLoss;
};

// For example "rank-00001.safetensors: bytes … differ …; this concerns the header, tensors a, b".
// Few tensors are named.
std::string TextOf(const VerifyFailure& failure);

struct VerifyReport {
  int64_t step = 0;
  int64_t bytes = 0;  // bytes read
  int files = 0;
  std::vector<VerifyFailure> failures;

  // Returns OK, or the code of the first failure (of the first damage, if there is any) with its
  // file, tensors and reason and the number of further failures.
  Status ToStatus() const;
};

// Reads every byte of the checkpoint in `directory`. Checks the manifest (against `manifest_digest`
// unless empty), each file's size, block checksums and whole digest, and its header against the
// manifest. Continues after a failure, so that the report names all of them, at most one per file
// and block. Large reads bypass the kernel's page cache where the file system can. Ends soon, with
// a CANCELLED failure, once `stop` is true.
VerifyReport VerifyCheckpoint(FileSystem& files, const std::string& directory,
                              std::string_view manifest_digest,
                              const std::atomic<bool>* stop = nullptr);

}  // namespace troupe

#endif  // TROUPE_CHECKPOINT_READ_VERIFY_H_
