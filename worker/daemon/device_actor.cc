#include "worker/daemon/device_actor.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "worker/daemon/event_sender.h"
#include "worker/devices/device_metrics.h"

namespace troupe {
namespace {

bool IsRoutine(const DeviceObservation& observation) {
  return observation.events.empty() && observation.verdict.health < Health::kReplaceRank;
}

class DeviceActor final : public Actor {
 public:
  explicit DeviceActor(DeviceActorOptions options)
      : options_(std::move(options)), measured_(*options_.metrics) {}

  Status Start(Context& context) override {
    events_ = std::make_unique<EventSender>(
        [gate = options_.gate, owner = context.owner()](AnyMessage message) {
          return gate->Send(owner, std::move(message));
        });
    const auto sender = std::make_shared<ObservationSender>(
        [gate = options_.gate, self = context.self()](AnyMessage message) {
          return gate->Send(self, std::move(message));
        });
    watch_ = std::make_unique<DeviceWatch>(DeviceWatchOptions{
        .library = options_.library,
        .devices = options_.devices,
        .observed = [sender](const DeviceObservation& observation) { sender->Send(observation); },
    });
    return OkStatus();
  }

  Status Handle(AnyMessage message, Context& context) override {
    if (message.As<OfferAgain>()) return events_->OfferLater(context);
    const auto* observed = message.As<DeviceObserved>();
    if (observed == nullptr) return Internal("the watch of devices received {}", message.name());
    const DeviceObservation& observation = observed->observation;
    measured_.Record(observation, context.WallNanoseconds());
    const Verdict& verdict = observation.verdict;
    if (verdict.health < Health::kReplaceRank) return OkStatus();
    return events_->Report(
        session::DeviceFault{observation.index, verdict.health == Health::kCondemned,
                             verdict.cause},
        context);
  }

 private:
  const DeviceActorOptions options_;
  DeviceMetrics measured_;
  std::unique_ptr<EventSender> events_;
  std::unique_ptr<DeviceWatch> watch_;
};

}  // namespace

void ObservationSender::Send(const DeviceObservation& observation) {
  kept_.push_back(observation);
  while (!kept_.empty()) {
    const Status sent = send_(AnyMessage(DeviceObserved{kept_.front()}));
    if (sent.code() == StatusCode::kResourceExhausted) break;
    kept_.pop_front();
  }
  if (kept_.size() <= kKeptMax) return;
  LogWarning("health", "{} observations of devices wait to be handled", kept_.size());
  const auto oldest = std::ranges::find_if(kept_, IsRoutine);
  if (oldest != kept_.end()) kept_.erase(oldest);
}

std::unique_ptr<Actor> MakeDeviceActor(DeviceActorOptions options) {
  return std::make_unique<DeviceActor>(std::move(options));
}

}  // namespace troupe
