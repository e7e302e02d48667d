// Records the activity of a rank's step thread: a ring of the last intervals, always on, and the
// operations of steps that were requested beforehand.
//
// An interval costs one clock reading and an uncontended lock. After construction only
// AskForOperations allocates memory. Thread-safe: the step thread writes, any thread may request
// and read.
#ifndef TROUPE_WORKER_EXECUTOR_STEP_TRACE_H_
#define TROUPE_WORKER_EXECUTOR_STEP_TRACE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "base/clock.h"
#include "kernels/backend/executable.h"
#include "worker/executor/step_progress.h"

namespace troupe {

struct TracedInterval {
  MonotonicTime begin;
  MonotonicTime end;
  int64_t step = 0;
  Phase phase = Phase::kIdle;  // kIdle: the whole step
  int32_t chunk = 0;
  int32_t microbatch = 0;
};

struct TracedOperation {
  MonotonicTime begin;
  MonotonicTime end;
  int64_t step = 0;
  const char* name = nullptr;  // valid as long as the executable
};

class StepTrace : public kernels::OperationObserver {
 public:
  // REQUIRES: both are at least 1. `operations_max`: operations kept per AskForOperations.
  explicit StepTrace(size_t intervals = 8192, size_t operations_max = 40000);

  // --- Called by the step thread.
  void BeginStep(int64_t step);
  // Ends the current phase and begins `phase`.
  void Enter(Phase phase, int chunk, int microbatch);
  // Ends the current phase.
  void Leave();
  void EndStep();
  // Whether the operations of the current step were requested; if so, the executable reports them.
  bool wants_operations() const {
    const int64_t step = step_.load(std::memory_order_relaxed);
    return step >= first_wanted_.load(std::memory_order_relaxed) &&
           step <= last_wanted_.load(std::memory_order_relaxed);
  }
  void Ran(const model::Op& op, const char* name, int buffer) override;

  // --- Called by any thread.
  // Adds an interval that is independent of the phases.
  void Add(const TracedInterval& interval);
  // Requests the operations of these steps and cancels any previous request.
  void AskForOperations(int64_t first_step, int64_t last_step);

  struct Snapshot {
    std::vector<TracedInterval> intervals;  // intervals of the requested steps
    std::vector<TracedOperation> operations;
    int64_t dropped_operations = 0;
    // The steps with all their intervals; first > last: none.
    int64_t first_held_step = 1;
    int64_t last_held_step = 0;
  };
  Snapshot Capture(int64_t first_step, int64_t last_step) const;
  // The last completed step; 0: none.
  int64_t last_step() const;

 private:
  void AddLocked(const TracedInterval& interval);
  void LeaveLocked(MonotonicTime now);

  const size_t operations_max_;
  mutable std::mutex mutex_;
  std::vector<TracedInterval> ring_;
  uint64_t added_ = 0;
  int64_t forgotten_step_ = 0;  // highest step with an overwritten interval
  int64_t first_step_ = 0;      // first step recorded
  int64_t last_step_ = 0;       // last completed step
  TracedInterval open_;         // the current phase, if `is_open_`
  bool is_open_ = false;
  MonotonicTime step_begin_;
  MonotonicTime operation_begin_;
  std::vector<TracedOperation> operations_;
  int64_t dropped_operations_ = 0;
  std::atomic<int64_t> step_{0};
  std::atomic<int64_t> first_wanted_{0};
  std::atomic<int64_t> last_wanted_{-1};
};

}  // namespace troupe

#endif  // TROUPE_WORKER_EXECUTOR_STEP_TRACE_H_
