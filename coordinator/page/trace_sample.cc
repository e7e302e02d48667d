#include "coordinator/page/trace_sample.h"

#include <utility>

namespace troupe {

bool Trains(const v1::Job& job) {
  return job.state() == v1::JOB_STATE_RUNNING || job.state() == v1::JOB_STATE_CHECKPOINTING;
}

std::optional<int64_t> StepToTrace(const v1::Job& job, int64_t last_of_group) {
  if (!Trains(job) || last_of_group <= 0 || job.ranks_size() > kMostTracedRanks)
    return std::nullopt;
  return last_of_group;
}

bool IsOfViewer(const Status& error) {
  return error.code() == StatusCode::kUnauthenticated ||
         error.code() == StatusCode::kPermissionDenied || error.code() == StatusCode::kCancelled;
}

void TakeTrace(StatusOr<v1::TraceJobResponse> answer, TraceSample* sample) {
  *sample = {};
  if (!answer.ok()) {
    sample->error = ToString(answer.status());
  } else if (const size_t bytes = answer->ByteSizeLong(); bytes > kMostTraceBytes) {
    sample->error =
        fmt::format("the trace of a step has {} bytes, above the {} that the page shows", bytes,
                    kMostTraceBytes);
  } else {
    sample->trace = *std::move(answer);
  }
}

}  // namespace troupe
