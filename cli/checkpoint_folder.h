// Finds the folder of a checkpoint that the command line names: by its path, or as JOB[@STEP].
#ifndef TROUPE_CLI_CHECKPOINT_FOLDER_H_
#define TROUPE_CLI_CHECKPOINT_FOLDER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "base/status.h"
#include "cli/client.h"
#include "troupe/v1/checkpoint.pb.h"

namespace troupe {

// INVALID_ARGUMENT if `path` is a file: a checkpoint is named by its folder. NOT_FOUND if there is
// nothing.
Status CheckCheckpointFolder(FileSystem& files, const std::string& path);

// JOB, the newest checkpoint of a job, or JOB@STEP.
struct CheckpointOfJob {
  std::string job;              // "jobs/x"
  std::optional<int64_t> step;  // absent: the newest
};

// Parses JOB[@STEP]; absent if `text` has no such form, so that it can only be a path.
// INVALID_ARGUMENT if it begins with "jobs/", or has an "@" after the name of a job, and has no
// such form. Pure.
StatusOr<std::optional<CheckpointOfJob>> ParseCheckpointOfJob(const std::string& text);

// Returns the checkpoint among those of its job, newest last. Without a step it is the newest
// commit that is not quarantined; with one it is the newest commit of this step, or else the newest
// quarantined one of it. NOT_FOUND of the coordinator if there is none. Pure.
StatusOr<v1::CheckpointRecord> ChooseCheckpoint(const CheckpointOfJob& wanted,
                                                const std::vector<v1::CheckpointRecord>& records);

// Returns all commits of the job, "jobs/x", quarantined ones too, newest last. NOT_FOUND if there
// is no such job.
StatusOr<std::vector<v1::CheckpointRecord>> ReadCheckpoints(Client* client, const std::string& job);

// A checkpoint that the command line names.
struct NamedCheckpoint {
  std::string path;    // that of its folder
  std::string digest;  // that of its manifest, from the coordinator; empty if `path` was given
};

// INVALID_ARGUMENT if there is no manifest file in the folder `path`, so that it is no checkpoint.
Status CheckHasManifest(FileSystem& files, const std::string& path);

// Returns the digest of the manifest file in the folder `path`. Errors of ReadFile.
StatusOr<std::string> DigestOfManifest(FileSystem& files, const std::string& path);

// Finds the folders that the arguments of one command name. It calls the coordinator of the command
// for JOB[@STEP] only. Not thread-safe.
class CheckpointFinder {
 public:
  // Both must outlive the finder. REQUIRES: the command has ClusterUse::kCoordinator.
  CheckpointFinder(FileSystem& files, const CommandLine& line) : files_(files), line_(line) {}

  // Returns the path of the folder that Locate finds. INVALID_ARGUMENT if it has no manifest, or
  // another one than the coordinator states: then it is no checkpoint, or not that of the job.
  StatusOr<std::string> Find(const std::string& text);

  // Returns the folder without reading it. An existing directory is a path, unless `text` begins
  // with "jobs/", which is always a job; a message names the folder of a job's checkpoint. Errors
  // of CheckCheckpointFolder if `text` can only be a path, or is a file and has no step; else those
  // of Client::Make and ChooseCheckpoint, and NOT_FOUND if the folder is not on this host.
  StatusOr<NamedCheckpoint> Locate(const std::string& text);

  // Returns the absolute path of a checkpoint of `job`, "jobs/x". It need not be on this host, so a
  // text that can only be a path is that path; else the text is read as Locate reads it, and the
  // path is that of the coordinator's record. INVALID_ARGUMENT if it names a checkpoint of another
  // job; else the errors of Locate.
  StatusOr<std::string> PathInCatalog(const std::string& job, const std::string& text);

 private:
  // Absent if `text` names a path.
  StatusOr<std::optional<CheckpointOfJob>> NamedOfJob(const std::string& text);
  StatusOr<v1::CheckpointRecord> ReadRecord(const CheckpointOfJob& wanted);
  StatusOr<NamedCheckpoint> LocateOfJob(const CheckpointOfJob& wanted);

  FileSystem& files_;
  const CommandLine& line_;
  std::optional<Client> client_;
};

}  // namespace troupe

#endif  // TROUPE_CLI_CHECKPOINT_FOLDER_H_
