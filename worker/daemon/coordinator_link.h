// The daemon's link to its coordinator as an actor: dials when asked to, sends, and reports what
// arrives. It has one stream at a time, which its session numbers.
//
// A stream delivers no further message while StreamCallbacks::kUnhandledMax of its messages wait
// for the session; the coordinator's writes then wait.
#ifndef TROUPE_WORKER_DAEMON_COORDINATOR_LINK_H_
#define TROUPE_WORKER_DAEMON_COORDINATOR_LINK_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "actor/actor.h"
#include "troupe/v1/worker.pb.h"
#include "worker/daemon/actor_gate.h"
#include "worker/daemon/coordinator_stream.h"

namespace troupe {

// Messages to the link.

// Ends the stream that it has, dials and sends `hello`.
struct DialCoordinator {
  static constexpr std::string_view kMessageName = "coordinator.dial";
  uint64_t stream = 0;
  v1::WorkerMessage hello;
};
struct HangUpCoordinator {
  static constexpr std::string_view kMessageName = "coordinator.hang_up";
};
// Sends all messages, unless this is no longer the stream.
struct SendOnStream {
  static constexpr std::string_view kMessageName = "coordinator.send";
  uint64_t stream = 0;
  std::vector<v1::WorkerMessage> messages;
};

using DialStream = std::function<std::unique_ptr<CoordinatorStream>(StreamCallbacks)>;

// Reports StreamMessage and StreamClosed to its owner. `gate` leads to the link's own system.
std::unique_ptr<Actor> MakeCoordinatorLink(DialStream dial, std::shared_ptr<ActorGate> gate);

}  // namespace troupe

#endif  // TROUPE_WORKER_DAEMON_COORDINATOR_LINK_H_
