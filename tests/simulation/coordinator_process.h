// The coordinator as a simulated process: the product's state machines and catalog in a shell that
// does what the gRPC shell does, on streams of the simulator.
//
// The first byte on a stream tells whether it belongs to a worker or to the client; see
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
#include "coordinator/machine/machine.h"
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
  CoordinatorProcess(World& world, CatalogObserver& observer, HostObserver& hosts, NodeId node,
                     Store& store, CoordinatorOptions options, ShellBugs bugs)
      : world_(world),
        observer_(observer),
        hosts_(hosts),
        node_(node),
        store_(store),
        options_(std::move(options)),
        bugs_(bugs) {}

  Status Start(Context& context) override;
  Status Handle(AnyMessage message, Context& context) override;

 private:
  Status HandleBytes(StreamId stream, const std::string& bytes, Context& context);
  Status HandleCall(StreamId stream, const std::string& bytes, Context& context);
  template <typename Call>
  Status RunCall(CallId id, const std::string& payload, Context& context);
  Status HearStranger(WorkerSaid said, Context& context);
  // Passes one event to the machine and performs its effects in order.
  template <typename What>
  Status Run(What what, Context& context);
  Status Perform(Effects& effects, Context& context);
  void SendMessages(Effects& effects, Context& context);
  void SetAlarm(Context& context);

  World& world_;
  CatalogObserver& observer_;
  HostObserver& hosts_;
  const NodeId node_;
  Store& store_;
  const CoordinatorOptions options_;
  const ShellBugs bugs_;
  uint64_t life_ = 0;  // as counted by the observer
  CoordinatorState state_;
  TimerId alarm_;
  MonotonicTime alarm_time_ = MonotonicTime::max();
  // Open calls: stream and the client's number.
  std::map<CallId, std::pair<StreamId, uint64_t>> calls_;
  CallId next_call_ = 1;
  std::set<StreamId> strangers_;
};

}  // namespace troupe::simulation

#endif  // TROUPE_TESTS_SIMULATION_COORDINATOR_PROCESS_H_
