// What a rank's step thread did when: a ring of the last intervals, always on, and the operations of
// steps that were asked for beforehand.
//
// An interval costs one clock reading and an uncontended lock. Once made, nothing is allocated but by
// AskForOperations. Thread-safe: written by the step thread, asked and read by any.
#ifndef TROUPE_WORKER_EXECUTOR_STEP_TRACE_H_
#define TROUPE_WORKER_EXECUTOR_STEP_TRACE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "base/clock.h"
#include "kernels/backend.h"
#include "worker/executor/step_progress.h"

namespace troupe {

struct TracedInterval {
  MonotonicTime begin;
  MonotonicTime end;
  int64_t step = 0;
  Phase phase = Phase::kIdle;  // kIdle: the step as a whole
  int32_t chunk = 0;
  int32_t microbatch = 0;
};

struct TracedOperation {
  MonotonicTime begin;
  MonotonicTime end;
  int64_t step = 0;
  const char* name = nullptr;  // lives as long as the executable
};

class StepTrace : public kernels::OperationObserver {
 public:
  // REQUIRES: both are at least 1. `operations_max`: kept of one AskForOperations.
  explicit StepTrace(size_t intervals = 8192, size_t operations_max = 40000);

  // --- The step thread.
  void BeginStep(int64_t step);
  // The phase at hand ends, `phase` begins.
  void Enter(Phase phase, int chunk, int microbatch);
  // The phase at hand ends.
  void Leave();
  void EndStep();
  // Whether operations of the step at hand were asked for; then the executable tells of them.
  bool wants_operations() const {
    const int64_t step = step_.load(std::memory_order_relaxed);
    return step >= first_wanted_.load(std::memory_order_relaxed) &&
           step <= last_wanted_.load(std::memory_order_relaxed);
  }
  void Ran(const model::Op& op, const char* name, int buffer) override;

  // --- Any thread.
  // Something that began and ended apart from the phases.
  void Add(const TracedInterval& interval);
  // Operations of these steps are wanted, and of no others any more.
  void AskForOperations(int64_t first_step, int64_t last_step);

  struct Snapshot {
    std::vector<TracedInterval> intervals;  // of the steps asked for
    std::vector<TracedOperation> operations;
    int64_t dropped_operations = 0;
    // Steps that are remembered whole; first > last: none.
    int64_t first_held_step = 1;
    int64_t last_held_step = 0;
  };
  Snapshot Take(int64_t first_step, int64_t last_step) const;
  // The last step that ended; 0: none.
  int64_t last_step() const;

 private:
  void AddLocked(const TracedInterval& interval);
  void LeaveLocked(MonotonicTime now);

  const size_t operations_max_;
  mutable std::mutex mutex_;
  std::vector<TracedInterval> ring_;
  uint64_t added_ = 0;
  int64_t forgotten_step_ = 0;  // of what was overwritten, the highest
  int64_t first_step_ = 0;      // ever
  int64_t last_step_ = 0;       // that ended
  TracedInterval open_;         // the phase at hand, if `is_open_`
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
