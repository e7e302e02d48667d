// The requests of modules to the lifecycle (coordinator/job/lifecycle.h), which ends groups and
// jobs, those that failed through coordinator/job/recovery.h. Other modules below it return a
// transition instead of calling upward; who receives one must apply it.
#ifndef TROUPE_COORDINATOR_STATE_TRANSITION_H_
#define TROUPE_COORDINATOR_STATE_TRANSITION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "coordinator/state/job_failure.h"
#include "coordinator/state/job_state.h"
#include "coordinator/state/stop.h"

namespace troupe {

// The job ends in `state`.
struct JobEnd {
  v1::JobState state = v1::JOB_STATE_SUCCEEDED;
  std::optional<v1::Failure> failure;
  std::string message;
};

// The checkpoint of `step` was committed, after which the ranks of a job that is to grow stop.
struct GrowthCommitted {
  int64_t step = 0;
};

// The group ends without a failure, because it leaves workers that are draining.
struct GroupMoves {
  int64_t step = 0;  // the step of its last commit, after which its ranks stop; 0: it has not run
};

// The checkpoint after which the job was to grow or to move could not be written, but its ranks'
// images were.
struct StopUnsaved {};

// A commit was quarantined, perhaps the last one of a job that waits to be restored.
struct CommitQuarantined {};

// std::monostate: nothing is to be done. Breakdown: the group ends by a failure.
using Transition = std::variant<std::monostate, Breakdown, JobEnd, GrowthCommitted, GroupMoves,
                                StopUnsaved, CommitQuarantined>;

// Whether the last step is reported and, if the job has a folder, committed.
bool IsFinished(const Job& job);

// The end of a job that is finished.
JobEnd Success(const Job& job);

// The transition after the commit of `step`, after which the ranks of a job that is not finished
// have stopped for `purpose`.
Transition AfterCommit(StopPurpose purpose, int64_t step);

// The end of a job that is cancelled without a commit of its last step. `failure`: why the commit
// that was wanted was not made; empty: none was wanted.
JobEnd CancelWithoutCommit(const Job& job, const std::string& failure);

// The applied steps that neither a commit nor an image of the job's ranks contains, such as "steps
// 5 to 7 are in no commit"; empty if there is none.
std::string LostStepsText(const Job& job);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_STATE_TRANSITION_H_
