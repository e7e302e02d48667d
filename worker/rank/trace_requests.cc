#include "worker/rank/trace_requests.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "worker/rank/rank_trace.h"

namespace troupe {

void TraceRequests::Submit(const v1::TraceRequest& request) {
  {
    std::lock_guard lock(mutex_);
    waiting_.push_back(request);
    if (steps_.last_step() < request.last_step() && !has_ended_) {
      steps_.AskForOperations(request.first_step(), request.last_step());
      return;
    }
  }
  AnswerUpTo(request.last_step());
}

void TraceRequests::AnswerUpTo(int64_t step) {
  std::vector<v1::TraceRequest> due;
  {
    std::lock_guard lock(mutex_);
    if (waiting_.empty()) return;
    const auto later =
        std::stable_partition(waiting_.begin(), waiting_.end(),
                              [step](const auto& request) { return request.last_step() <= step; });
    due.assign(waiting_.begin(), later);
    waiting_.erase(waiting_.begin(), later);
  }
  for (const v1::TraceRequest& request : due) Answer(request);
}

void TraceRequests::EndSteps() {
  {
    std::lock_guard lock(mutex_);
    has_ended_ = true;
  }
  AnswerUpTo(std::numeric_limits<int64_t>::max());
}

StatusOr<v1::RankTrace> TraceRequests::Collect() {
  return TraceOf(1, std::numeric_limits<int64_t>::max());
}

StatusOr<v1::RankTrace> TraceRequests::TraceOf(int64_t first_step, int64_t last_step) {
  TROUPE_ASSIGN_OR_RETURN(v1::RankTrace trace, remember_(steps_, first_step, last_step));
  trace.set_job(identity_.job);
  trace.set_group_epoch(identity_.group_epoch);
  trace.set_rank(identity_.rank);
  using std::chrono::nanoseconds;
  const nanoseconds realtime = std::chrono::system_clock::now().time_since_epoch();
  const nanoseconds monotonic = std::chrono::steady_clock::now().time_since_epoch();
  trace.set_realtime_offset_ns((realtime - monotonic).count());
  return trace;
}

void TraceRequests::Answer(const v1::TraceRequest& request) {
  StatusOr<v1::RankTrace> trace = TraceOf(request.first_step(), request.last_step());
  Status status = trace.status();
  if (trace.ok()) status = CheckHeld(*trace, request.first_step(), request.last_step());
  v1::WorkerMessage message;
  v1::RankTrace& answer = *message.mutable_rank_trace();
  if (status.ok()) {
    answer = *std::move(trace);
  } else {
    answer.set_job(identity_.job);
    answer.set_group_epoch(identity_.group_epoch);
    answer.set_rank(identity_.rank);
    answer.set_code(static_cast<int>(status.code()));
    answer.set_message(std::string(Message(status)));
  }
  answer.set_request(request.request());
  send_(std::move(message));
}

}  // namespace troupe
