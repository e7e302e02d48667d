// The files that a job names, opened beneath the roots of its kind of path. A root that is empty
// confines nothing.
#ifndef TROUPE_PLAN_JOB_JOB_FILES_H_
#define TROUPE_PLAN_JOB_JOB_FILES_H_

#include <optional>
#include <string>

#include "base/confined/confined_file_system.h"
#include "base/file_system.h"
#include "troupe/v1/path_roots.pb.h"

namespace troupe {

// Thread-safe.
class JobFiles {
 public:
  // `unconfined` opens the paths whose root is empty; it must outlive the object.
  JobFiles(FileSystem& unconfined, const v1::PathRoots& roots);

  // For data.train, data.validation, data.blend and tokenizers.
  FileSystem& data() { return Choose(data_); }
  // For checkpoint.folder, checkpoint.initial_load and the job's own checkpoints.
  FileSystem& checkpoints() { return Choose(checkpoints_); }
  // For model.from.
  FileSystem& imports() { return Choose(imports_); }

 private:
  FileSystem& Choose(std::optional<ConfinedFileSystem>& confined) {
    return confined ? static_cast<FileSystem&>(*confined) : unconfined_;
  }

  FileSystem& unconfined_;
  std::optional<ConfinedFileSystem> data_, checkpoints_, imports_;
};

}  // namespace troupe

#endif  // TROUPE_PLAN_JOB_JOB_FILES_H_
