// Traces that were asked for: asked of the workers that have, or had, the ranks of the job's newest
// group, and answered once all ranks have. Pure; nothing of it is durable.
#ifndef TROUPE_COORDINATOR_TRACES_H_
#define TROUPE_COORDINATOR_TRACES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/clock.h"
#include "coordinator/event.h"
#include "coordinator/job.h"
#include "coordinator/turn.h"
#include "troupe/v1/service.pb.h"
#include "troupe/v1/worker.pb.h"

namespace troupe {

struct PendingTrace {
  CallId call = 0;
  v1::TraceRequest request;                    // without ranks
  std::map<int32_t, std::string> outstanding;  // ranks that have not answered, and whom we asked
  v1::TraceJobResponse answered;
  int64_t bytes = 0;
  MonotonicTime deadline;
};

struct Traces {
  uint64_t last_request = 0;
  std::map<uint64_t, PendingTrace> pending;  // by request number
};

// Asks for the steps, or replies with what is wrong with them: INVALID_ARGUMENT for a range that no
// job has, FAILED_PRECONDITION where the job made no step or its workers are away.
void AskForTrace(const Job& job, CallId call, const v1::TraceJobRequest& request, Traces* traces,
                 Turn& turn);

// REQUIRES: JudgeMessage accepted it.
void OnRankTrace(const v1::RankTrace& trace, Traces* traces, Turn& turn);

// A rank has ended: what it did not answer is asked of what it left behind.
void AskAgainAfterEnd(const v1::RankStopped& stopped, const std::string& worker,
                      const Traces& traces, Turn& turn);

// Replies to those whose time is over.
void ExpireTraces(Traces* traces, Turn& turn);
void AbandonTrace(CallId call, Traces* traces);
std::optional<MonotonicTime> NextTraceDeadline(const Traces& traces);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_TRACES_H_
