// What a job file becomes before it is sent or planned: complete, checked, its data looked at.
#ifndef TROUPE_CLI_JOB_INPUT_H_
#define TROUPE_CLI_JOB_INPUT_H_

#include "base/status.h"
#include "cli/command_line.h"
#include "data/dataset.h"
#include "troupe/v1/job.pb.h"

namespace troupe {

// LoadJobFile of the command's file with its --set, and the configuration of model.from written into
// it.
StatusOr<v1::JobSpec> LoadJob(const CommandLine& line);

// `spec` with its defaults, or every relation that failed.
StatusOr<v1::JobSpec> CompleteAndCheck(const v1::JobSpec& spec);

// Opens the data of a complete spec as training would. INVALID_ARGUMENT naming the key to
// blame.
StatusOr<Dataset> OpenData(const v1::JobSpec& complete);
Status CheckData(const v1::JobSpec& complete);

// Relative paths of `spec` against the working directory.
Status ResolvePathsHere(v1::JobSpec* spec);

}  // namespace troupe

#endif  // TROUPE_CLI_JOB_INPUT_H_
