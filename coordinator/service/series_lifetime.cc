#include "coordinator/service/series_lifetime.h"

#include <algorithm>

#include "coordinator/state/job_state.h"

namespace troupe {

void SeriesLifetime::SetState(const std::string& job, v1::JobState state, int64_t ended_wall_ns,
                              MonotonicTime now, int64_t wall_ns) {
  if (!HasEnded(state)) {
    ended_.erase(job);
    return;
  }
  if (ended_.contains(job)) return;
  Duration left = kSeriesAfterEnd;
  // The end may have been long before this process began.
  if (ended_wall_ns > 0)
    left = std::min<Duration>(left - std::chrono::nanoseconds(wall_ns - ended_wall_ns), left);
  ended_[job] = {.shown_until = now + left, .is_shown = left > Duration::zero()};
}

bool SeriesLifetime::IsShown(const std::string& job) const {
  const auto found = ended_.find(job);
  return found == ended_.end() || found->second.is_shown;
}

std::vector<std::string> SeriesLifetime::Expire(MonotonicTime now) {
  std::vector<std::string> expired;
  for (auto& [job, ended] : ended_) {
    if (!ended.is_shown || now < ended.shown_until) continue;
    ended.is_shown = false;
    expired.push_back(job);
  }
  return expired;
}

}  // namespace troupe
