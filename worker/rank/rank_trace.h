// Makes the trace of a rank's last steps: phases, operations and collectives in one message.
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

// The recorded collectives of a rank.
struct TracedCollectives {
  std::vector<RecordedOperation> operations;  // in the order of issue
  bool complete = true;                       // none was overwritten
};

// Returns the steps of [first_step, last_step] that both arguments hold completely, and the range
// of steps held. The caller sets job, epoch, rank, request and clock offset.
v1::RankTrace MakeRankTrace(const StepTrace& trace, const TracedCollectives& collectives,
                            int64_t first_step, int64_t last_step);

// Returns FAILED_PRECONDITION, which names both ranges, if [first_step, last_step] is not within
// the range held by `trace`.
Status CheckHeld(const v1::RankTrace& trace, int64_t first_step, int64_t last_step);

// Returns `trace` without the steps outside [first_step, last_step].
v1::RankTrace OnlySteps(const v1::RankTrace& trace, int64_t first_step, int64_t last_step);

// Returns "…/rank-3.worker-0.trace" for the log "…/rank-3.worker-0.log": the file in which a rank
// that ends leaves its trace.
std::string RankTracePath(const std::string& log_path);

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_RANK_TRACE_H_
