// What a rank tells of its last steps: phases, operations and collectives as one message.
#ifndef TROUPE_WORKER_RANK_RANK_TRACE_H_
#define TROUPE_WORKER_RANK_RANK_TRACE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "collective/statistics.h"
#include "troupe/v1/worker.pb.h"
#include "worker/executor/step_trace.h"

namespace troupe {

// The collectives that a rank remembers.
struct TracedCollectives {
  std::vector<RecordedOperation> operations;  // in the order of issue
  bool complete = true;                       // none was forgotten
};

// The whole steps of [first_step, last_step] that are remembered of both, with the range of those
// that are. Job, epoch, rank, request and clock offset are the caller's to set.
v1::RankTrace MakeRankTrace(const StepTrace& trace, const TracedCollectives& collectives,
                            int64_t first_step, int64_t last_step);

// FAILED_PRECONDITION naming both ranges where [first_step, last_step] is not within what `trace` says
// is held.
Status CheckHeld(const v1::RankTrace& trace, int64_t first_step, int64_t last_step);

// What is left of `trace` without steps outside of [first_step, last_step].
v1::RankTrace OnlySteps(const v1::RankTrace& trace, int64_t first_step, int64_t last_step);

// "…/rank-3.worker-0.trace" beside "…/rank-3.worker-0.log": where a rank that ends leaves what it
// remembers.
std::string RankTracePath(const std::string& log_path);

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_RANK_TRACE_H_
