// The coordinator as a simulated process: the product's engine (coordinator/engine/engine_actor.h)
// on virtual time, with streams of the simulator in the place of gRPC's, and observers around it.
//
// The first byte on a stream states whether it belongs to a worker or to the client; see
// client_process.h for the client's frames.
#ifndef TROUPE_TESTS_SIMULATION_COORDINATOR_PROCESS_H_
#define TROUPE_TESTS_SIMULATION_COORDINATOR_PROCESS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "actor/actor.h"
#include "actor/sim/network.h"
#include "coordinator/engine/engine_actor.h"
#include "tests/simulation/catalog_observer.h"
#include "tests/simulation/host_observer.h"
#include "tests/simulation/world.h"

namespace troupe::simulation {

// Known bugs of a coordinator's shell, reintroduced to show that the simulation catches them.
struct ShellBugs {
  bool forget_leader_epoch = false;  // begins with 1 at every start instead of the catalog's next
  bool ack_before_durable = false;   // sends replies and messages before the writes
};

class CoordinatorProcess final : public Actor {
 public:
  // `watchers` is a WatchFanout on the same node.
  CoordinatorProcess(World& world, CatalogObserver& observer, HostObserver& hosts, NodeId node,
                     Store& store, Address watchers, CoordinatorOptions options, ShellBugs bugs)
      : world_(world),
        observer_(observer),
        hosts_(hosts),
        node_(node),
        store_(store),
        watchers_(watchers),
        options_(std::move(options)),
        bugs_(bugs) {}

  Status Start(Context& context) override;
  Status Handle(AnyMessage message, Context& context) override;
  Status HandleBatchEnd(Context& context) override;

 private:
  class Sink;

  Status HandleClosed(StreamId stream, Context& context);
  Status HandleBytes(StreamId stream, const std::string& bytes, Context& context);
  Status HandleCall(StreamId stream, const std::string& bytes, Context& context);
  template <typename Call>
  Status RunCall(CallId id, const std::string& payload, Context& context);
  Status HearStranger(WorkerReported reported, Context& context);
  // Passes a message to the engine.
  template <typename Message>
  Status PassToEngine(Message message, Context& context);
  void SendReply(const Reply& reply);
  // Does what the bug ack_before_durable does: sends the newest event's messages and replies.
  void AckEarly();

  World& world_;
  CatalogObserver& observer_;
  HostObserver& hosts_;
  const NodeId node_;
  Store& store_;
  const Address watchers_;
  const CoordinatorOptions options_;
  const ShellBugs bugs_;
  uint64_t life_ = 0;  // as counted by the observer
  uint64_t keys_ = 0;  // drawn in this life
  Address self_;
  std::unique_ptr<EngineActor> engine_;
  // Open calls: stream and the client's number.
  std::map<CallId, std::pair<StreamId, uint64_t>> calls_;
  CallId next_call_ = 1;
  std::set<StreamId> strangers_;
};

}  // namespace troupe::simulation

#endif  // TROUPE_TESTS_SIMULATION_COORDINATOR_PROCESS_H_
