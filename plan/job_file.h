// The job file: YAML whose keys are the fields of proto/troupe/v1/job.proto, read strictly by reflection. An unknown
// or duplicate key, a wrong type, a number that is not finite or does not fit is an error with file, line and, for an
// unknown key, the nearest known one. All pure but LoadJobFile, which reads one file.
#ifndef TROUPE_PLAN_JOB_FILE_H_
#define TROUPE_PLAN_JOB_FILE_H_

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "troupe/v1/job.pb.h"

namespace troupe {

// Job files larger than this are refused.
inline constexpr size_t kMaxJobFileBytes = size_t{1} << 20;

// Writes the YAML `text` into `message`, whose fields are the keys; absent keys stay absent. `file_name` is for
// messages only. INVALID_ARGUMENT with BadRequest details and lines "job.yaml:7: …" for every error found.
Status ParseKeys(std::string_view text, std::string_view file_name,
                 google::protobuf::Message* message);

// The spec that `text` states; by ParseKeys.
StatusOr<v1::JobSpec> ParseJobFile(std::string_view text, std::string_view file_name);

// Sets one key, "training.steps=20", over what `spec` has; the value is parsed as YAML. INVALID_ARGUMENT as above.
Status ApplyOverride(std::string_view key_and_value, v1::JobSpec* spec);

// Makes the relative paths of `spec` absolute: relative to `folder`, which is absolute. These are data.train,
// data.validation, data.blend[].path, model.from, checkpoint.folder and checkpoint.initial_load.
void ResolvePaths(std::string_view folder, v1::JobSpec* spec);

// Reads `path`, applies `overrides` in order and resolves relative paths against the file's folder, those of the
// overrides too. A job that does not state checkpoint.folder (not even "") keeps its checkpoints in `checkpoints`
// there. INVALID_ARGUMENT where it cannot be read.
StatusOr<v1::JobSpec> LoadJobFile(const std::string& path, const std::vector<std::string>& overrides);

}  // namespace troupe

#endif  // TROUPE_PLAN_JOB_FILE_H_
