// Makes plans on its own threads, so that the engine never waits for one. Both the number made at
// once and the number waiting are limited, which bounds their memory
// (plan/validate/validate_pipeline.h bounds the memory of each). Placement still runs on the
// engine's thread: coordinator/machine/scheduler.h says why.
#ifndef TROUPE_COORDINATOR_SERVICE_PLAN_DESK_H_
#define TROUPE_COORDINATOR_SERVICE_PLAN_DESK_H_

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "base/status.h"

namespace troupe {

// Thread-safe.
class PlanDesk {
 public:
  using Clock = std::chrono::steady_clock;

  struct Options {
    int threads = 2;
    size_t max_waiting = 64;
    // longest time a task may wait before it starts
    Clock::duration limit = std::chrono::seconds(30);
  };

  explicit PlanDesk(Options options);
  ~PlanDesk() { Stop(); }
  PlanDesk(const PlanDesk&) = delete;
  PlanDesk& operator=(const PlanDesk&) = delete;

  // Calls `task` once: with OK on one of the threads; with RESOURCE_EXHAUSTED at once if
  // max_waiting tasks wait already; with DEADLINE_EXCEEDED if it waited longer than `limit`. After
  // Stop the task is dropped.
  void Run(std::function<void(const Status&)> task);

  // Finishes the running tasks and drops the waiting ones. Idempotent. REQUIRES: not called by a
  // task.
  void Stop();

 private:
  struct Waiting {
    Clock::time_point deadline;
    std::function<void(const Status&)> task;
  };

  void Loop();

  const Options options_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Waiting> waiting_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_SERVICE_PLAN_DESK_H_
