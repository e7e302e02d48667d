// The job file: YAML whose keys are the fields of proto/troupe/v1/job.proto, parsed strictly by
// reflection. An unknown or duplicate key, a wrong type, or a number that is not finite or does not
// fit is an error with file, line and column; for an unknown key it names the one that is meant.
// All functions are pure except ReadKeys and LoadJobFile, which read one file.
#ifndef TROUPE_PLAN_JOB_JOB_FILE_H_
#define TROUPE_PLAN_JOB_JOB_FILE_H_

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "plan/job/key_places.h"
#include "troupe/v1/job.pb.h"

namespace troupe {

// Files of keys, such as job files, that are larger than this are refused.
inline constexpr size_t kMaxJobFileBytes = size_t{1} << 20;

// Returns the text of a file of keys. INVALID_ARGUMENT if it is missing (wrong input, not an
// unknown job), too large, or not a regular file: a FIFO or a device may never end.
StatusOr<std::string> ReadKeys(const std::string& path);

// Parses the YAML `text` into `message`, whose fields are the keys; absent keys stay absent.
// `file_name` is used in messages only. INVALID_ARGUMENT: for a text that is not YAML,
// "job.yaml:7:3: …"; else with BadRequest details, and a place "(job.yaml:7:3)" for every error.
Status ParseKeys(std::string_view text, std::string_view file_name,
                 google::protobuf::Message* message);

// Parses `text` into a spec as ParseKeys does, and writes into `places`, if it is not null, where
// each key is stated. INVALID_ARGUMENT also for a text without any key, which `{}` is not.
StatusOr<v1::JobSpec> ParseJobFile(std::string_view text, std::string_view file_name,
                                   KeyPlaces* places = nullptr);

// Sets one key of `spec` from text like "training.steps=20"; the value is parsed as YAML. `places`,
// if it is not null, gets the place "--set training.steps". INVALID_ARGUMENT as above, with that
// place.
Status ApplyOverride(std::string_view key_and_value, v1::JobSpec* spec,
                     KeyPlaces* places = nullptr);

// Makes every relative path below `message` absolute, relative to the absolute path `folder`. The
// schema states which keys are paths (KeyOptions.path).
void ResolvePaths(std::string_view folder, google::protobuf::Message* message);

// The text of a job file.
struct JobText {
  std::string text;
  std::string name;    // as errors name it: "job.yaml"
  std::string folder;  // an absolute path, to which relative ones in the text are relative
};

// A job as its file and overrides state it, with absolute paths.
struct LoadedJob {
  v1::JobSpec spec;
  KeyPlaces places;    // with that of the whole text
  std::string folder;  // that of its text
};

// Parses a job, applies `overrides` in order, and resolves relative paths (also those of the
// overrides). A job that does not state checkpoint.folder (not even as "") gets the subfolder
// `checkpoints` of the folder. INVALID_ARGUMENT as ParseJobFile and ApplyOverride.
StatusOr<LoadedJob> ReadJob(const JobText& file, const std::vector<std::string>& overrides);

// The same for the job file `path`, with its folder. INVALID_ARGUMENT also where the file cannot be
// read.
StatusOr<LoadedJob> LoadJobFile(const std::string& path, const std::vector<std::string>& overrides);

}  // namespace troupe

#endif  // TROUPE_PLAN_JOB_JOB_FILE_H_
