#include "checkpoint/read/survey.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/text/printable.h"
#include "checkpoint/format/attempt.h"
#include "checkpoint/format/digest.h"
#include "checkpoint/format/folder.h"
#include "checkpoint/format/manifest.h"
#include "checkpoint/read/verify.h"

namespace troupe {
namespace {

struct Found {
  v1::CheckpointRecord record;
  std::string spec_json;
  std::string folder;
  int64_t create_wall_time_ns = 0;
};

// Returns the names of the directories in `path`; symbolic links are not followed.
StatusOr<std::vector<std::string>> DirectoriesIn(FileSystem& files, const std::string& path) {
  TROUPE_ASSIGN_OR_RETURN(const std::vector<DirectoryEntry> entries, files.List(path));
  std::vector<std::string> names;
  for (const DirectoryEntry& entry : entries) {
    if (entry.kind == FileKind::kDirectory) names.push_back(entry.name);
  }
  return names;
}

StatusOr<Found> Look(FileSystem& files, const std::string& path) {
  if (const std::string fault = TextFault(path); !fault.empty())
    return InvalidArgument("its path {}", fault);
  TROUPE_ASSIGN_OR_RETURN(const std::string text,
                          ReadFile(files, JoinPath(path, kManifestFileName), kManifestBytesMax,
                                   SymbolicLinks::kRefuse));
  TROUPE_ASSIGN_OR_RETURN(const v1::CheckpointManifest manifest, ManifestFromJson(text));
  if (manifest.job().empty() || manifest.attempt() < 1 || manifest.state().step() < 1) {
    return InvalidArgument(
        "its manifest names job \"{}\", attempt {} and step {}, which no checkpoint of a job has",
        manifest.job(), manifest.attempt(), manifest.state().step());
  }
  Found found;
  found.spec_json = manifest.job_spec_json();
  found.create_wall_time_ns = manifest.job_create_wall_time_ns();
  found.folder = ParentDirectory(ParentDirectory(path));
  v1::CheckpointRecord& record = found.record;
  record.set_job(manifest.job());
  record.set_attempt(manifest.attempt());
  record.set_group_epoch(manifest.group_epoch());
  record.set_step(manifest.state().step());
  record.set_path(path);
  *record.mutable_layout() = manifest.layout();
  record.set_digest(Sha256Of(AsBytes(text)));
  int64_t bytes = static_cast<int64_t>(text.size());
  for (const v1::ShardFile& shard : manifest.shards()) bytes += shard.bytes();
  record.set_bytes(bytes);
  record.set_expected_shards(manifest.shards_size());
  record.set_intent_wall_time_ns(manifest.wall_time_ns());
  record.set_commit_wall_time_ns(manifest.wall_time_ns());
  record.set_pinned(true);
  TROUPE_ASSIGN_OR_RETURN(*record.mutable_folder_id(), FindFolderId(files, found.folder));
  const Status whole = VerifyCheckpoint(files, path, record.digest()).ToStatus();
  record.set_verified(whole.ok());
  record.set_state(whole.ok() ? v1::CHECKPOINT_STATE_COMMITTED : v1::CHECKPOINT_STATE_QUARANTINED);
  // A damaged file is quoted with any bytes.
  if (!whole.ok()) record.set_reason(PrintableLine(Message(whole)));
  return found;
}

// Selects the newest job of one name among everything found under that name.
SurveyedJob NewestJob(std::string id, std::vector<Found> found, std::vector<LeftOut>* left_out) {
  std::ranges::sort(found, {}, [](const Found& one) { return one.record.attempt(); });
  SurveyedJob job;
  job.id = std::move(id);
  for (const Found& one : found) {
    job.create_wall_time_ns = std::max(job.create_wall_time_ns, one.create_wall_time_ns);
  }
  for (Found& one : found) {
    if (one.create_wall_time_ns != job.create_wall_time_ns) {
      left_out->push_back({one.record.path(), "it belongs to an earlier job of this name"});
    } else if (!job.checkpoints.empty() &&
               job.checkpoints.back().attempt() == one.record.attempt()) {
      left_out->push_back(
          {one.record.path(),
           fmt::format("another checkpoint has its attempt number {}", one.record.attempt())});
    } else {
      job.spec_json = std::move(one.spec_json);
      job.folder = std::move(one.folder);
      job.checkpoints.push_back(std::move(one.record));
    }
  }
  return job;
}

}  // namespace

StatusOr<Survey> SurveyCheckpoints(FileSystem& files, const std::string& folder) {
  TROUPE_ASSIGN_OR_RETURN(const std::vector<std::string> names, DirectoriesIn(files, folder));
  std::vector<std::string> job_directories;
  if (std::ranges::any_of(names, [](const std::string& name) { return IsAttemptName(name); })) {
    job_directories.push_back(folder);
  } else {
    for (const std::string& name : names) job_directories.push_back(JoinPath(folder, name));
  }
  Survey survey;
  std::map<std::string, std::vector<Found>> jobs;
  for (const std::string& directory : job_directories) {
    TROUPE_ASSIGN_OR_RETURN(const std::vector<std::string> attempts,
                            DirectoriesIn(files, directory));
    for (const std::string& attempt : attempts) {
      if (!IsAttemptName(attempt)) continue;
      const std::string path = JoinPath(directory, attempt);
      StatusOr<Found> found = Look(files, path);
      if (found.ok()) {
        const std::string id = found->record.job();
        jobs[id].push_back(*std::move(found));
      } else if (found.status().code() == StatusCode::kNotFound) {
        survey.left_out.push_back({path, "it has no manifest: it was never committed"});
      } else {
        survey.left_out.push_back({path, std::string(Message(found.status()))});
      }
    }
  }
  for (auto& [id, found] : jobs) {
    survey.jobs.push_back(NewestJob(id, std::move(found), &survey.left_out));
  }
  std::ranges::sort(survey.left_out, {}, &LeftOut::path);
  return survey;
}

}  // namespace troupe
