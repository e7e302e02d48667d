// Requested traces: the request goes to the workers that have, or had, the ranks of the job's
// newest group, and is answered once all ranks have answered. Pure; none of this state is durable.
#ifndef TROUPE_COORDINATOR_MACHINE_TRACES_H_
#define TROUPE_COORDINATOR_MACHINE_TRACES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/clock.h"
#include "coordinator/state/event.h"
#include "coordinator/state/job_state.h"
#include "coordinator/state/turn.h"
#include "troupe/v1/service.pb.h"
#include "troupe/v1/worker.pb.h"

namespace troupe {

struct PendingTrace {
  CallId call = 0;
  v1::TraceRequest request;  // without ranks
  // rank that has not answered → the worker that was asked
  std::map<int32_t, std::string> outstanding;
  v1::TraceJobResponse answered;
  int64_t bytes = 0;
  MonotonicTime deadline;
};

struct Traces {
  uint64_t last_request = 0;
  std::map<uint64_t, PendingTrace> pending;  // by request number
};

// Requests the steps, or replies with an error: INVALID_ARGUMENT for an invalid range or more steps
// than one request may have, FAILED_PRECONDITION if the job has not run, ended before these steps,
// or has workers that are away.
void AskForTrace(const Job& job, CallId call, const v1::TraceJobRequest& request, Traces* traces,
                 Turn& turn);

// REQUIRES: JudgeMessage accepted it.
void OnRankTrace(const v1::RankTrace& trace, Traces* traces, Turn& turn);

// Called when a rank has ended: requests what it did not answer from the files that it left.
void AskAgainAfterEnd(const v1::RankStopped& stopped, const std::string& worker,
                      const Traces& traces, Turn& turn);

// Replies to the requests that have passed their deadlines.
void ExpireTraces(Traces* traces, Turn& turn);
void AbandonTrace(CallId call, Traces* traces);
std::optional<MonotonicTime> NextTraceDeadline(const Traces& traces);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_MACHINE_TRACES_H_
