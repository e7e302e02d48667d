// Hints on what a user can do about a path of a job that does not exist. Pure: only the text of the
// path is looked at.
#ifndef TROUPE_PLAN_JOB_PATH_HINTS_H_
#define TROUPE_PLAN_JOB_PATH_HINTS_H_

#include <string>
#include <string_view>

namespace troupe {

// Returns the text to append to the error that no dataset is at `path`: "; state the prefix, …".
std::string DatasetHint(std::string_view path);

// Returns the text to append to the error that there is no job file `path`. Empty for a path that
// is neither like the resource name of a job, jobs/x, nor like a job's id without a dot: the part
// behind a dot may be the ending of a file.
std::string JobFileHint(std::string_view path);

// Returns the text to append to the error that no directory is at model.from. `stated` is the path
// relative to the folder of the job file. Empty for a path that is neither like a name of the
// Hugging Face hub, ORGANIZATION/MODEL, nor like the name of a job, jobs/x.
std::string ModelFromHint(std::string_view stated);

}  // namespace troupe

#endif  // TROUPE_PLAN_JOB_PATH_HINTS_H_
