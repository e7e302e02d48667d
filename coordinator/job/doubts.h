// A commit that one worker found damaged is doubted until a second reading decides: a wrong reading
// on one host (a disk mounted in the folder's place, bad memory) must not cost a checkpoint. The
// second reader is a worker of another host, else another worker of the same host, else the same
// worker again. If it also finds damage, the commit is quarantined; if the commit is intact, it is
// valid again and the first reader's host is blamed. All functions are pure.
//
// A doubt is durable; its reader is not, so a restarted coordinator asks again.
#ifndef TROUPE_COORDINATOR_JOB_DOUBTS_H_
#define TROUPE_COORDINATOR_JOB_DOUBTS_H_

#include <optional>
#include <string>

#include "coordinator/state/job_state.h"
#include "coordinator/state/transition.h"
#include "coordinator/state/turn.h"

namespace troupe {

// Handles the report of `worker` that the commit at `path` is damaged. The first report starts a
// second reading; a second report from another host quarantines the commit. No effect if there is
// no such commit.
[[nodiscard]] Transition DoubtCommit(Job& job, const std::string& path, const std::string& reason,
                                     const std::string& worker, Turn& turn);

// Handles the answer to a reading for a doubt; returns nullopt if none was requested from `worker`.
[[nodiscard]] std::optional<Transition> OnDoubtRead(Job& job, const v1::CheckpointVerified& message,
                                                    const std::string& worker, Turn& turn);

// Ends the doubt about attempt `number`, which `reader` found intact: the commit is valid again. No
// host is blamed, because the files may have been repaired. REQUIRES: it is doubted.
void EndDoubt(Job& job, int64_t number, const std::string& reader, Turn& turn);

// Drops the readings of commits that retention has deleted meanwhile.
void ForgetGoneDoubts(Job& job);

// Asks the next reader if one has gone away or missed its deadline. If no reader is left, gives up
// the reading; the doubt remains, and the job may be restored from the commit again. REQUIRES:
// ForgetGoneDoubts was called.
void AdvanceDoubts(Job& job, Turn& turn);

// Returns when AdvanceDoubts next has work to do.
std::optional<MonotonicTime> NextDoubtDeadline(const Job& job);

// Returns the message to show while the job waits for a reading of the commit that it would be
// restored from; empty if it need not wait.
std::string AwaitedReading(const Job& job);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_JOB_DOUBTS_H_
