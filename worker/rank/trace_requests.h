// Answers a rank's requests for traces: at once for steps that are done, else as soon as they are.
//
// Thread-safe: requests come from the control thread, steps end on the step thread.
#ifndef TROUPE_WORKER_RANK_TRACE_REQUESTS_H_
#define TROUPE_WORKER_RANK_TRACE_REQUESTS_H_

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "base/status.h"
#include "troupe/v1/worker.pb.h"
#include "worker/executor/step_trace.h"

namespace troupe {

class TraceRequests {
 public:
  struct Identity {
    std::string job;
    uint64_t group_epoch = 0;
    int rank = 0;
  };
  // Calls MakeRankTrace with the rank's collectives; an error once they are gone. Called from any
  // thread.
  using Remember = std::function<StatusOr<v1::RankTrace>(const StepTrace&, int64_t first_step,
                                                         int64_t last_step)>;
  using Send = std::function<void(v1::WorkerMessage)>;

  TraceRequests(Identity identity, Remember remember, Send send)
      : identity_(std::move(identity)), remember_(std::move(remember)), send_(std::move(send)) {}

  StepTrace& steps() { return steps_; }

  void Submit(const v1::TraceRequest& request);
  // Answers requests for steps up to `step`, which have ended.
  void AnswerUpTo(int64_t step);
  // No further step will run: refuses the requests that wait for one.
  void EndSteps();
  // Returns everything recorded.
  StatusOr<v1::RankTrace> Collect();

 private:
  void Answer(const v1::TraceRequest& request);
  StatusOr<v1::RankTrace> TraceOf(int64_t first_step, int64_t last_step);

  const Identity identity_;
  const Remember remember_;
  const Send send_;
  StepTrace steps_;
  std::mutex mutex_;
  std::vector<v1::TraceRequest> waiting_;  // requests for future steps
  bool has_ended_ = false;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_TRACE_REQUESTS_H_
