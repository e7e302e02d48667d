// The check of the index of jobs (coordinator/machine/job_index.h) against loops over all jobs; for
// tests, which call it after each event.
#ifndef TROUPE_COORDINATOR_TEST_JOB_INDEX_H_
#define TROUPE_COORDINATOR_TEST_JOB_INDEX_H_

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <set>
#include <string>

#include "coordinator/job/job_timers.h"
#include "coordinator/machine/coordinator_state.h"

namespace troupe {

// Returns how the index differs from what the loops find; empty if it does not.
inline std::string FaultOfJobIndex(const CoordinatorState& state) {
  std::set<std::string> active;
  std::set<QueueKey> queue;
  std::map<std::string, std::set<std::string>> on_workers;
  for (const auto& [name, worker] : state.fleet.workers) on_workers[name];
  for (const auto& [id, job] : state.jobs) {
    if (NextJobDeadline(job, state.options.limits)) active.insert(id);
    if (IsQueued(job)) queue.insert(QueueKeyOf(job));
    for (const v1::RankPlacement& rank : job.last_group.ranks())
      on_workers[rank.worker()].insert(id);
    if (!job.group) continue;
    if (!active.contains(id)) return fmt::format("{} has a group and no deadline", id);
    for (const v1::RankPlacement& rank : job.plan.ranks()) {
      if (!on_workers[rank.worker()].contains(id))
        return fmt::format("{} runs on {}, which its newest group lacks", id, rank.worker());
    }
  }
  if (state.index.active() != active) {
    return fmt::format("jobs with deadlines: {} in the index, {} by a loop",
                       fmt::join(state.index.active(), ", "), fmt::join(active, ", "));
  }
  if (state.index.queue() != queue) {
    return fmt::format("the queue has {} jobs in the index, {} by a loop",
                       state.index.queue().size(), queue.size());
  }
  for (const auto& [worker, jobs] : on_workers) {
    if (state.index.OnWorker(worker) == jobs) continue;
    return fmt::format("jobs of {}: {} in the index, {} by a loop", worker,
                       fmt::join(state.index.OnWorker(worker), ", "), fmt::join(jobs, ", "));
  }
  return "";
}

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_TEST_JOB_INDEX_H_
