#include "coordinator/page/watched_jobs.h"

#include <algorithm>

namespace troupe {

WatchedJobs::Key WatchedJobs::KeyOf(const v1::Job& job) {
  return {job.name(), job.create_wall_time_ns(), job.group_epoch()};
}

std::shared_ptr<WatchedJob> WatchedJobs::Find(const v1::Job& job, MonotonicTime now) {
  const Key key = KeyOf(job);
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(jobs_, key, &Entry::key);
  if (found != jobs_.end()) {
    jobs_.splice(jobs_.begin(), jobs_, found);
    found->looked_at = now;
    return found->job;
  }
  jobs_.push_front({key, std::make_shared<WatchedJob>(job.group_epoch()), now});
  while (jobs_.size() > kUsual) {
    if (jobs_.size() <= kMost && now < jobs_.back().looked_at + kLookInterval) break;
    jobs_.pop_back();
  }
  return jobs_.front().job;
}

bool WatchedJobs::MayTrace(const v1::Job& job, MonotonicTime now) {
  const std::lock_guard lock(mutex_);
  std::erase_if(traced_, [now](const auto& row) { return now >= row.second + kTraceInterval; });
  return traced_.try_emplace(KeyOf(job), now).second;
}

void WatchedJobs::ForgetTrace(const v1::Job& job) {
  const std::lock_guard lock(mutex_);
  traced_.erase(KeyOf(job));
}

}  // namespace troupe
