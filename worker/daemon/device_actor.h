// The daemon's watch of its GPUs as an actor: owns the thread in the driver (DeviceWatch), records
// what it observes in the metrics, and reports faults to the session actor.
#ifndef TROUPE_WORKER_DAEMON_DEVICE_ACTOR_H_
#define TROUPE_WORKER_DAEMON_DEVICE_ACTOR_H_

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "actor/actor.h"
#include "base/metrics/metrics.h"
#include "worker/daemon/actor_gate.h"
#include "worker/devices/device_watch.h"

namespace troupe {

struct DeviceObserved {
  static constexpr std::string_view kMessageName = "devices.observed";
  DeviceObservation observation;
};

// The thread's side: passes observations to the actor. One that the actor's mailbox has no room for
// is kept and passed with the next. If kKeptMax are kept, the oldest one without an event and
// without a fault is dropped, because its successor has the same content; others are never dropped.
//
// Not thread-safe: only the watch's thread uses it.
class ObservationSender {
 public:
  static constexpr size_t kKeptMax = 256;

  explicit ObservationSender(std::function<Status(AnyMessage)> send) : send_(std::move(send)) {}

  void Send(const DeviceObservation& observation);
  size_t kept() const { return kept_.size(); }

 private:
  const std::function<Status(AnyMessage)> send_;
  std::deque<DeviceObservation> kept_;
};

struct DeviceActorOptions {
  std::string library;  // path of NVML
  std::vector<WatchedDevice> devices;
  Metrics* metrics = nullptr;       // outlives the actor
  std::shared_ptr<ActorGate> gate;  // to the actor's system
};

// Reports DeviceFault to its owner. REQUIRES: `options` has devices.
std::unique_ptr<Actor> MakeDeviceActor(DeviceActorOptions options);

}  // namespace troupe

#endif  // TROUPE_WORKER_DAEMON_DEVICE_ACTOR_H_
