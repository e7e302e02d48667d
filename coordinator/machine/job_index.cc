#include "coordinator/machine/job_index.h"

#include "coordinator/job/job_timers.h"

namespace troupe {

QueueKey QueueKeyOf(const Job& job) {
  return {-int64_t{job.spec.priority()}, job.record.sequence(), job.id()};
}

void JobIndex::Update(const Job& job, const TimeLimits& limits) {
  if (IsQueued(job)) {
    queue_.insert(QueueKeyOf(job));
  } else {
    queue_.erase(QueueKeyOf(job));
  }
  if (NextJobDeadline(job, limits)) {
    active_.insert(job.id());
  } else {
    active_.erase(job.id());
  }
  UpdateWorkers(job);
}

void JobIndex::Remove(const Job& job) {
  queue_.erase(QueueKeyOf(job));
  active_.erase(job.id());
  RemoveWorkers(job.id());
}

std::set<std::string> JobIndex::OnWorker(const std::string& worker) const {
  const auto found = by_worker_.find(worker);
  return found == by_worker_.end() ? std::set<std::string>() : found->second;
}

// A group keeps its ranks for its whole life, so most changes of a job cost one comparison here.
void JobIndex::UpdateWorkers(const Job& job) {
  const auto known = groups_.find(job.id());
  const uint64_t epoch = known == groups_.end() ? 0 : known->second.epoch;
  if (job.last_group.group_epoch() == epoch) return;
  RemoveWorkers(job.id());
  IndexedGroup& group = groups_[job.id()];
  group.epoch = job.last_group.group_epoch();
  for (const v1::RankPlacement& rank : job.last_group.ranks()) {
    group.workers.insert(rank.worker());
    by_worker_[rank.worker()].insert(job.id());
  }
}

void JobIndex::RemoveWorkers(const std::string& id) {
  const auto group = groups_.find(id);
  if (group == groups_.end()) return;
  for (const std::string& worker : group->second.workers) {
    const auto jobs = by_worker_.find(worker);
    jobs->second.erase(id);
    if (jobs->second.empty()) by_worker_.erase(jobs);
  }
  groups_.erase(group);
}

}  // namespace troupe
