// The resource name of a job, "jobs/{id}", and its id. Thread-safe.
#ifndef TROUPE_PLAN_JOB_JOB_NAME_H_
#define TROUPE_PLAN_JOB_JOB_NAME_H_

#include <string>

namespace troupe {

// Returns "x" for "jobs/x", or `name` itself if it has no such prefix.
std::string JobId(const std::string& name);
// Returns "jobs/x" for "x" and for "jobs/x".
std::string JobName(const std::string& id_or_name);

}  // namespace troupe

#endif  // TROUPE_PLAN_JOB_JOB_NAME_H_
