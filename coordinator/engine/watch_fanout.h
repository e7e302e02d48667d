// The actor that passes updates of jobs to their watchers, so that many or slow watchers cost the
// engine nothing. Its messages come from the engine's actor only, in the order of the updates, so a
// watcher misses nothing after its subscription.
//
// Overload: if the mailbox is full, the engine drops an update and reports it (UpdatesLost). All
// watchers are then ended with RESOURCE_EXHAUSTED; each resumes from the stored history.
#ifndef TROUPE_COORDINATOR_ENGINE_WATCH_FANOUT_H_
#define TROUPE_COORDINATOR_ENGINE_WATCH_FANOUT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "actor/actor.h"
#include "base/status.h"
#include "coordinator/state/event.h"
#include "troupe/v1/service.pb.h"

namespace troupe {

// The most groups of updates that wait for the fan-out.
inline constexpr size_t kMostWaitingUpdates = 4096;

// The state that a watcher missed before it subscribed; live updates follow without a gap. The
// history is in the store.
struct WatchStart {
  Status status;                                 // OK or NOT_FOUND
  std::vector<v1::StepEvent> unflushed;          // steps newer than the stored history
  v1::JobState end = v1::JOB_STATE_UNSPECIFIED;  // final state, if the job has ended
};

// The receiver of one watcher's updates. Its functions are called one at a time and never block.
class WatchSink {
 public:
  virtual ~WatchSink() = default;
  // The first call, unless End is. Without a status of OK, or if the job has ended, it is the last.
  virtual void Begin(WatchStart start) = 0;
  // Returns false if the watcher is gone or too slow; it then gets no more updates.
  virtual bool Push(const v1::WatchJobResponse& update) = 0;
  // The last call: the watcher gets no more updates, for this reason.
  virtual void End(const Status& reason) = 0;
};

// The messages to the actor.
struct Subscription {
  static constexpr std::string_view kMessageName = "watch.subscription";
  std::string job;
  std::shared_ptr<WatchSink> sink;
  WatchStart start;
};
struct Updates {
  static constexpr std::string_view kMessageName = "watch.updates";
  std::vector<JobUpdate> updates;
  std::vector<std::string> forgotten_jobs;  // after the updates
};
// Updates were lost before this message.
struct UpdatesLost {
  static constexpr std::string_view kMessageName = "watch.updates_lost";
};

class WatchFanout final : public Actor {
 public:
  // Keeps `count` at the number of watchers that get updates; null: nowhere.
  explicit WatchFanout(std::shared_ptr<std::atomic<int64_t>> count = nullptr)
      : count_(std::move(count)) {}

  Status Handle(AnyMessage message, Context& context) override;

 private:
  void Subscribe(Subscription subscription);
  void Publish(const JobUpdate& update);
  void EndAll(const Status& reason);

  const std::shared_ptr<std::atomic<int64_t>> count_;
  std::unordered_map<std::string, std::vector<std::shared_ptr<WatchSink>>> watchers_;  // by job
};

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_ENGINE_WATCH_FANOUT_H_
