// When the page asks for the trace of a step. Pure.
//
// A trace is a call that the audit log records, and an answer of every rank. The page therefore
// asks seldom, for one step that the ranks still hold, and shares the answer among the viewers who
// may trace the job.
#ifndef TROUPE_COORDINATOR_PAGE_TRACE_SAMPLE_H_
#define TROUPE_COORDINATOR_PAGE_TRACE_SAMPLE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "troupe/v1/service.pb.h"

namespace troupe {

inline constexpr Duration kTraceInterval = std::chrono::seconds(30);
inline constexpr int kMostTracedRanks = 64;
inline constexpr size_t kMostTraceBytes = size_t{4} << 20;

// The newest trace of a job.
struct TraceSample {
  v1::TraceJobResponse trace;  // no ranks: there is none
  // The reason for which the last request gave none; empty: it did, or there was no request.
  std::string error;
};

// Whether the ranks of the job take steps.
bool Trains(const v1::Job& job);

// Returns the step to ask for; absent: none. `last_of_group` is the last step that the job's
// present ranks have reported; 0: none.
std::optional<int64_t> StepToTrace(const v1::Job& job, int64_t last_of_group);

// Whether the error is about the viewer who asked, or the end of the process, so that others may
// have an answer.
bool IsOfViewer(const Status& error);

// Replaces the trace of `sample` by the answer. After an error, or if the answer is too large,
// there is none. REQUIRES: the answer is no error of its viewer.
void TakeTrace(StatusOr<v1::TraceJobResponse> answer, TraceSample* sample);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_PAGE_TRACE_SAMPLE_H_
