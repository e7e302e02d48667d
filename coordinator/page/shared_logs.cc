#include "coordinator/page/shared_logs.h"

#include <algorithm>

#include "coordinator/page/trace_sample.h"

namespace troupe {

std::optional<LogSample> SharedLogs::Find(const Key& key, Duration most_age) {
  const std::lock_guard lock(mutex_);
  const auto found = samples_.find(key);
  if (found == samples_.end() || clock_.Now() >= found->second.read_at + most_age)
    return std::nullopt;
  return found->second.sample;
}

void SharedLogs::Keep(const Key& key, const LogSample& sample) {
  const std::lock_guard lock(mutex_);
  const MonotonicTime now = clock_.Now();
  std::erase_if(samples_, [now](const auto& row) { return now >= row.second.read_at + kUsable; });
  samples_.insert_or_assign(key, Entry{sample, now});
  if (samples_.size() <= kMost) return;
  samples_.erase(
      std::ranges::min_element(samples_, {}, [](const auto& row) { return row.second.read_at; }));
}

LogSample SharedLogs::Get(const Key& key, const std::function<LogSample()>& read) {
  if (std::optional<LogSample> fresh = Find(key, kFresh)) return *std::move(fresh);
  const std::unique_lock reading(reading_, std::try_to_lock);
  if (!reading.owns_lock()) {
    if (std::optional<LogSample> usable = Find(key, kUsable)) return *std::move(usable);
    return {.error = Unavailable("the coordinator reads other logs now; ask again in a moment")};
  }
  // Another thread may have read them since the first look.
  if (std::optional<LogSample> fresh = Find(key, kFresh)) return *std::move(fresh);
  LogSample sample = read();
  const bool is_for_all = sample.error.ok() || (!sample.lines.empty() && !IsOfViewer(sample.error));
  if (is_for_all) Keep(key, sample);
  return sample;
}

}  // namespace troupe
