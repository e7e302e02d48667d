// An index of the jobs, so that no event loops over all of them: the jobs that have a deadline, the
// queue, and the jobs of each worker. Pure.
//
// Invariant: it has what a loop over all jobs would find, if Update is called after each change of
// a job.
#ifndef TROUPE_COORDINATOR_MACHINE_JOB_INDEX_H_
#define TROUPE_COORDINATOR_MACHINE_JOB_INDEX_H_

#include <compare>
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "base/time_limits.h"
#include "coordinator/state/job_state.h"

namespace troupe {

// Orders the queue: by priority, then age.
struct QueueKey {
  int64_t negated_priority = 0;
  uint64_t sequence = 0;
  std::string id;
  auto operator<=>(const QueueKey&) const = default;
};

QueueKey QueueKeyOf(const Job& job);

class JobIndex {
 public:
  void Update(const Job& job, const TimeLimits& limits);
  void Remove(const Job& job);

  // The ids of the jobs that have a deadline. Every job with a group is one of them.
  const std::set<std::string>& active() const { return active_; }
  // The jobs that wait for devices, in scheduling order.
  const std::set<QueueKey>& queue() const { return queue_; }
  // The ids of the jobs whose newest group, which may have ended, has or had ranks on `worker`.
  std::set<std::string> OnWorker(const std::string& worker) const;

 private:
  struct IndexedGroup {
    uint64_t epoch = 0;
    std::set<std::string> workers;
  };
  void UpdateWorkers(const Job& job);
  void RemoveWorkers(const std::string& id);

  std::set<std::string> active_;
  std::set<QueueKey> queue_;
  std::map<std::string, IndexedGroup> groups_;              // newest group by job
  std::map<std::string, std::set<std::string>> by_worker_;  // jobs of groups_
};

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_MACHINE_JOB_INDEX_H_
