// Prepares a job before it is submitted or planned: reads its file or standard input, completes it,
// validates it and opens its data.
#ifndef TROUPE_CLI_JOB_INPUT_H_
#define TROUPE_CLI_JOB_INPUT_H_

#include "base/status.h"
#include "cli/command_line.h"
#include "data/dataset.h"
#include "plan/job/job_file.h"
#include "troupe/v1/job.pb.h"

namespace troupe {

// Every command that loads a job file lists this flag.
inline constexpr RepeatedFlag kSetFlag{"--set", "KEY=VALUE",
                                       "sets any key of the job file; the value is YAML"};

// Loads the command's job with its kSetFlag values (ReadJob) and copies the configuration of
// model.from into it. The job is that of the file which the command's first argument names, or for
// "-" of standard input, relative to the working directory. Errors name the places of their keys;
// callers add them to later errors (WithPlaces).
StatusOr<LoadedJob> LoadJob(const CommandLine& line);

// Returns `spec` with its defaults, or an error with every relation that failed.
StatusOr<v1::JobSpec> CompleteAndCheck(const v1::JobSpec& spec);

// Opens the data of a complete spec as training would. INVALID_ARGUMENT names the job key at fault.
StatusOr<Dataset> OpenData(const v1::JobSpec& complete);
Status CheckData(const v1::JobSpec& complete);

// Makes relative paths of `spec` absolute with respect to the working directory.
Status ResolvePathsHere(v1::JobSpec* spec);

}  // namespace troupe

#endif  // TROUPE_CLI_JOB_INPUT_H_
