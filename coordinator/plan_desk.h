// Makes plans on threads of its own, so that the engine never waits for one: few at a time, so that
// their memory is bounded (plan/validate_pipeline.h bounds that of each), and few that wait. They
// are placed on the engine's thread all the same: coordinator/scheduler.h says why.
#ifndef TROUPE_COORDINATOR_PLAN_DESK_H_
#define TROUPE_COORDINATOR_PLAN_DESK_H_

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
    Clock::duration limit = std::chrono::seconds(30);  // that a task may wait for its turn
  };

  explicit PlanDesk(Options options);
  ~PlanDesk() { Stop(); }
  PlanDesk(const PlanDesk&) = delete;
  PlanDesk& operator=(const PlanDesk&) = delete;

  // Calls `task` once: with OK on one of the threads; with RESOURCE_EXHAUSTED at once where as many
  // wait already; with DEADLINE_EXCEEDED where its turn came too late. After Stop it is dropped.
  void Run(std::function<void(const Status&)> task);

  // Finishes the tasks that are under way; those that wait are dropped. Idempotent.
  // REQUIRES: not called by a task.
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

#endif  // TROUPE_COORDINATOR_PLAN_DESK_H_
