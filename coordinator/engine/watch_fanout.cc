#include "coordinator/engine/watch_fanout.h"

#include <utility>

#include "base/log.h"

namespace troupe {

Status WatchFanout::Handle(AnyMessage message, Context& context) {
  if (auto* const subscription = message.As<Subscription>()) {
    Subscribe(std::move(*subscription));
  } else if (const auto* const updates = message.As<Updates>()) {
    for (const JobUpdate& update : updates->updates) Publish(update);
    for (const std::string& job : updates->forgotten_jobs) watchers_.erase(job);
  } else if (message.As<UpdatesLost>() != nullptr) {
    LogWarning("coordinator", "watchers are ended: more than {} groups of updates wait for them",
               kMostWaitingUpdates);
    EndAll(ResourceExhausted("too many updates wait for watchers: resume after the last step"));
  }
  if (count_) {
    size_t watchers = 0;
    for (const auto& [job, sinks] : watchers_) watchers += sinks.size();
    *count_ = static_cast<int64_t>(watchers);
  }
  return OkStatus();
}

void WatchFanout::Subscribe(Subscription subscription) {
  const bool live =
      subscription.start.status.ok() && subscription.start.end == v1::JOB_STATE_UNSPECIFIED;
  subscription.sink->Begin(std::move(subscription.start));
  if (live) watchers_[subscription.job].push_back(std::move(subscription.sink));
}

void WatchFanout::Publish(const JobUpdate& update) {
  const auto found = watchers_.find(update.job);
  if (found == watchers_.end()) return;
  std::erase_if(found->second, [&](const auto& sink) { return !sink->Push(update.update); });
  if (found->second.empty()) watchers_.erase(found);
}

void WatchFanout::EndAll(const Status& reason) {
  for (const auto& [job, sinks] : watchers_) {
    for (const std::shared_ptr<WatchSink>& sink : sinks) sink->End(reason);
  }
  watchers_.clear();
}

}  // namespace troupe
