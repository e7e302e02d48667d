#include "plan/job/job_files.h"

namespace troupe {

JobFiles::JobFiles(FileSystem& unconfined, const v1::PathRoots& roots) : unconfined_(unconfined) {
  if (!roots.data().empty()) data_.emplace(roots.data());
  if (!roots.checkpoints().empty()) checkpoints_.emplace(roots.checkpoints());
  if (!roots.imports().empty()) imports_.emplace(roots.imports());
}

}  // namespace troupe
