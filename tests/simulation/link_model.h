// A model of the daemon's link to its coordinator (worker/daemon/coordinator_link.h): a stream of
// the simulated network in place of gRPC's.
#ifndef TROUPE_TESTS_SIMULATION_LINK_MODEL_H_
#define TROUPE_TESTS_SIMULATION_LINK_MODEL_H_

#include <cstdint>
#include <memory>

#include "actor/actor.h"
#include "actor/sim/network.h"
#include "tests/simulation/world.h"
#include "troupe/v1/worker.pb.h"
#include "worker/daemon/event_sender.h"

namespace troupe::simulation {

class LinkModel final : public Actor {
 public:
  LinkModel(World& world, NodeId node, NodeId coordinator)
      : world_(world), node_(node), coordinator_(coordinator) {}

  Status Start(Context& context) override;
  Status Handle(AnyMessage message, Context& context) override;

 private:
  void Write(const v1::WorkerMessage& message, Context& context);

  World& world_;
  const NodeId node_;
  const NodeId coordinator_;
  std::unique_ptr<EventSender> events_;
  // The stream in use: the session's number and the network's.
  uint64_t number_ = 0;
  StreamId stream_;
  v1::WorkerMessage hello_;
};

}  // namespace troupe::simulation

#endif  // TROUPE_TESTS_SIMULATION_LINK_MODEL_H_
