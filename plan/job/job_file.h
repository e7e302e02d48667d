// The job file: YAML whose keys are the fields of proto/troupe/v1/job.proto, parsed strictly by
// reflection. An unknown or duplicate key, a wrong type, or a number that is not finite or does not
// fit is an error with file and line; for an unknown key it names the nearest known one. All
// functions are pure except ReadKeys and LoadJobFile, which read one file.
#ifndef TROUPE_PLAN_JOB_JOB_FILE_H_
#define TROUPE_PLAN_JOB_JOB_FILE_H_

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "troupe/v1/job.pb.h"

namespace troupe {

// Files of keys, such as job files, that are larger than this are refused.
inline constexpr size_t kMaxJobFileBytes = size_t{1} << 20;

// Returns the text of a file of keys. INVALID_ARGUMENT if it is missing (wrong input, not an
// unknown job), too large, or not a regular file: a FIFO or a device may never end.
StatusOr<std::string> ReadKeys(const std::string& path);

// Parses the YAML `text` into `message`, whose fields are the keys; absent keys stay absent.
// `file_name` is used in messages only. INVALID_ARGUMENT with BadRequest details and a line
// "job.yaml:7: …" for every error.
Status ParseKeys(std::string_view text, std::string_view file_name,
                 google::protobuf::Message* message);

// Parses `text` into a spec with ParseKeys.
StatusOr<v1::JobSpec> ParseJobFile(std::string_view text, std::string_view file_name);

// Sets one key of `spec` from text like "training.steps=20"; the value is parsed as YAML.
// INVALID_ARGUMENT as above.
Status ApplyOverride(std::string_view key_and_value, v1::JobSpec* spec);

// Makes every relative path below `message` absolute, relative to the absolute path `folder`. The
// schema states which keys are paths (KeyOptions.path).
void ResolvePaths(std::string_view folder, google::protobuf::Message* message);

// Reads the job file `path`, applies `overrides` in order, and resolves relative paths (also those
// of the overrides) against the folder of the file. A job that does not state checkpoint.folder
// (not even as "") gets the subfolder `checkpoints` of that folder. INVALID_ARGUMENT where the file
// cannot be read.
StatusOr<v1::JobSpec> LoadJobFile(const std::string& path,
                                  const std::vector<std::string>& overrides);

}  // namespace troupe

#endif  // TROUPE_PLAN_JOB_JOB_FILE_H_
