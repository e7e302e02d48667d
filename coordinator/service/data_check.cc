#include "coordinator/service/data_check.h"

#include <sys/utsname.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/confined/path_root.h"
#include "base/failure_cause.h"
#include "base/sample_schema.h"
#include "checkpoint/format/folder.h"
#include "checkpoint/format/manifest.h"
#include "checkpoint/format/sample_channels.h"
#include "data/job_data.h"
#include "plan/job/job_files.h"
#include "plan/job/kept_keys.h"
#include "plan/job/violation.h"

namespace troupe {
namespace {

// A path that leaves its root does so wherever it is.
bool FolderIsHere(FileSystem& files, const std::string& prefix) {
  const auto folder = files.Stat(ParentDirectory(prefix), SymbolicLinks::kFollow);
  return folder.ok() || LeavesRoot(folder.status());
}

// Refuses a path that leaves its root on this host.
Status CheckBeneath(FileSystem& files, const std::string& root, const std::string& key,
                    const std::string& path) {
  if (root.empty() || path.empty()) return OkStatus();
  const Status found = files.Stat(path, SymbolicLinks::kFollow).status();
  if (!LeavesRoot(found)) return OkStatus();
  return WithCause(
      RefuseField(StatusCode::kInvalidArgument, key, "is {}: {}", path, Message(found)),
      cause::kPathOutsideRoot);
}

}  // namespace

Status CheckJobData(FileSystem& files, const v1::JobSpec& complete, bool must_be_here) {
  const DatasetOptions options = MakeDatasetOptions(complete);
  const std::vector<std::string> paths = DataPaths(options);
  if (!must_be_here && !std::all_of(paths.begin(), paths.end(), [&](const std::string& path) {
        return FolderIsHere(files, path);
      })) {
    return OkStatus();
  }
  const auto dataset = Dataset::Open(files, options);
  if (dataset.ok()) return OkStatus();
  return WithCause(RefuseData(complete, KeyToBlame(dataset.status()), dataset.status()),
                   AttachedCause(dataset.status()));
}

Status CheckInitialLoad(FileSystem& files, const v1::JobSpec& complete, bool must_be_here) {
  const std::string& path = complete.checkpoint().initial_load();
  if (path.empty() || (!must_be_here && !FolderIsHere(files, path))) return OkStatus();
  const auto manifest = ReadManifest(files, path, "");
  if (!manifest.ok()) {
    const bool is_missing = manifest.status().code() == StatusCode::kNotFound;
    return RefuseField(
        StatusCode::kInvalidArgument, "checkpoint.initial_load", "is {}: {}{}", path,
        Message(manifest.status()),
        is_missing ? "; `troupe checkpoints list JOB` lists the paths of a job's checkpoints" : "");
  }
  if (const Status known = CheckSampleChannels(manifest->samples(), CurrentSampleSchema());
      !known.ok()) {
    return RefuseField(known.code(), "checkpoint.initial_load", "is {}: {}", path, Message(known));
  }
  return CheckContinues(*manifest, complete);
}

Status CheckCheckpointFolder(FileSystem& files, const v1::JobSpec& complete, bool must_be_here) {
  const std::string& folder = complete.checkpoint().folder();
  if (folder.empty() || !must_be_here) return OkStatus();
  std::string missing;
  const auto is_missing = [&](const std::string& path) {
    return files.Stat(path, SymbolicLinks::kFollow).status().code() == StatusCode::kNotFound;
  };
  for (std::string path = folder; path != "/" && is_missing(path); path = ParentDirectory(path))
    missing = path;
  if (missing.empty()) return OkStatus();
  // Only an attempt shows it: /proc grants every right and has no room for folders. A disk that is
  // full or read-only at present is waited for, as where the folder exists.
  const Status made = files.MakeDirectory(missing);
  if (made.ok() || made.code() == StatusCode::kAlreadyExists) {
    if (made.ok()) files.RemoveDirectory(missing).IgnoreError();
    return OkStatus();
  }
  if (SaysFolderIsFull(made) || SaysFolderIsReadOnly(made)) return OkStatus();
  return RefuseField(StatusCode::kInvalidArgument, "checkpoint.folder",
                     "is {}, which cannot be made: {}", folder, Message(made));
}

Status CheckJobFiles(const v1::JobSpec& complete, const v1::PathRoots& roots, bool must_be_here) {
  PosixFileSystem unconfined;
  JobFiles files(unconfined, roots);
  TROUPE_RETURN_IF_ERROR(
      CheckBeneath(files.imports(), roots.imports(), "model.from", complete.model().from()));
  TROUPE_RETURN_IF_ERROR(CheckJobData(files.data(), complete, must_be_here));
  FileSystem& checkpoints = files.checkpoints();
  TROUPE_RETURN_IF_ERROR(CheckInitialLoad(checkpoints, complete, must_be_here));
  TROUPE_RETURN_IF_ERROR(CheckBeneath(checkpoints, roots.checkpoints(), "checkpoint.folder",
                                      complete.checkpoint().folder()));
  return CheckCheckpointFolder(checkpoints, complete, must_be_here);
}

CheckFiles WithCheckpointRoot(std::string root, std::string id, CheckFiles check) {
  return [root = std::move(root), id = std::move(id), check = std::move(check)](
             const v1::JobSpec& complete, const v1::PathRoots& roots, bool must_be_here) -> Status {
    const std::string& folder = complete.checkpoint().folder();
    if (folder == root || folder.starts_with(JoinPath(root, ""))) {
      PosixFileSystem files;
      const StatusOr<FileInfo> info = files.Stat(root, SymbolicLinks::kFollow);
      if (!info.ok() || info->kind != FileKind::kDirectory) {
        return RefuseField(StatusCode::kFailedPrecondition, "checkpoint.folder",
                           "is {}, but --checkpoint-root {} is no directory on the coordinator's "
                           "host any more; mount it again",
                           folder, root);
      }
      if (const Status same = CheckFolderId(files, root, id); !same.ok()) {
        return RefuseField(StatusCode::kFailedPrecondition, "checkpoint.folder",
                           "is {}, but --checkpoint-root has changed on the coordinator's host: {}",
                           folder, Message(same));
      }
    }
    return check(complete, roots, must_be_here);
  };
}

bool AllWorkersAreHere(const Fleet& fleet) {
  utsname host{};
  if (uname(&host) != 0) return false;
  return !fleet.workers.empty() &&
         std::all_of(fleet.workers.begin(), fleet.workers.end(), [&](const auto& worker) {
           return worker.second.hello.host() == host.nodename;
         });
}

}  // namespace troupe
