// Deletion of ended jobs from the catalog, on request or because more are kept than allowed. Pure.
#ifndef TROUPE_COORDINATOR_JOB_DELETION_H_
#define TROUPE_COORDINATOR_JOB_DELETION_H_

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/keep_ended.h"
#include "base/status.h"
#include "coordinator/state/job_state.h"
#include "coordinator/state/turn.h"

namespace troupe {

// Returns OK, or FAILED_PRECONDITION if the job has not ended, if one of its ranks may still be
// alive, or, with `checkpoints`, if a checkpoint is pinned or no known worker can delete them.
Status CheckDeletable(const Job& job, bool checkpoints, const Fleet& fleet);

// Starts or resends the deletion. Returns true if there is nothing to wait for and the caller may
// drop the job now. Without `checkpoints`, the directories of commits are kept, files of aborted
// attempts are deleted where their worker is connected, and a job already in deletion no longer
// waits for files. Until the job is dropped, a request with `checkpoints` still finds its commits.
// Images of the job's ranks are deleted. REQUIRES: CheckDeletable.
bool BeginDeletion(Job& job, bool checkpoints, Turn& turn);

// The number of the job's checkpoint directories that workers are to remove.
int64_t CountToRemove(const Job& job);
// Whether the commits of a job in deletion are to be removed, too.
bool RemovesCommits(const Job& job);

// Returns the ended jobs that `keep` no longer retains, earliest end first. Excludes jobs with a
// rank that may still be alive, and jobs with their newest state in images of their ranks, because
// the images would be deleted too.
std::vector<std::string> EndedJobsToDrop(const std::map<std::string, Job>& jobs, const Fleet& fleet,
                                         const KeepEnded& keep, int64_t wall_ns);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_JOB_DELETION_H_
