// Jobs that have ended and go from the catalog: because somebody asks for it, or because more of
// them are kept than shall be. Pure.
#ifndef TROUPE_COORDINATOR_DELETION_H_
#define TROUPE_COORDINATOR_DELETION_H_

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/keep_ended.h"
#include "base/status.h"
#include "coordinator/job.h"

namespace troupe {

// What is left of a job that is being deleted is asked for again so often: a worker that lacks the
// folder, or cannot write to it, says nothing.
inline constexpr auto kDeleteAgainInterval = std::chrono::minutes(1);

// OK, or FAILED_PRECONDITION: it has not ended, a rank of it may still live, or, with
// `checkpoints`, one is pinned or no worker is known that can delete them.
Status CheckDeletable(const Job& job, bool checkpoints, const Fleet& fleet);

// Begins to delete it, or says again what is to be deleted: true if nothing is to be waited for,
// and the caller may drop it now. Without `checkpoints` the directories of commits stay as they
// are; files of aborted attempts are deleted where their worker is connected, and a job that is
// being deleted already waits for no file any more. Images of its ranks go. REQUIRES:
// CheckDeletable.
bool BeginDeletion(Job& job, bool checkpoints, Turn& turn);

// Ended jobs that `keep` lets go, those that ended first at the front. Never one whose newest state
// is in images of its ranks: they would go with it.
std::vector<std::string> EndedJobsToDrop(const std::map<std::string, Job>& jobs, const Fleet& fleet,
                                         const KeepEnded& keep, int64_t wall_ns);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_DELETION_H_
