// Users, modelled as one process that calls the coordinator's API and repeats every call until it
// is answered.
#ifndef TROUPE_TESTS_SIMULATION_CLIENT_PROCESS_H_
#define TROUPE_TESTS_SIMULATION_CLIENT_PROCESS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "actor/actor.h"
#include "actor/sim/network.h"
#include "tests/simulation/catalog_observer.h"
#include "tests/simulation/client_frame.h"
#include "tests/simulation/world.h"

namespace troupe::simulation {

struct PlannedCall {
  Duration after{};  // since the client's start
  CallKind kind = CallKind::kCreateJob;
  std::string job;
  std::string request_id;  // id of the CreateJob that the call is or depends on
  std::string payload;     // the serialized request
};

// The outcome of a call.
struct CallOutcome {
  bool answered = false;
  StatusCode code = StatusCode::kOk;
};

// Adds these calls to the client; their times count from now.
struct FurtherCalls {
  static constexpr std::string_view kMessageName = "client.further_calls";
  std::vector<PlannedCall> calls;
};

class ClientProcess final : public Actor {
 public:
  // `outcomes` outlives the process, which adds one entry per call.
  ClientProcess(World& world, CatalogObserver& observer, NodeId node, NodeId coordinator,
                std::vector<PlannedCall> calls, std::vector<CallOutcome>& outcomes)
      : world_(world),
        observer_(observer),
        node_(node),
        coordinator_(coordinator),
        calls_(std::move(calls)),
        outcomes_(outcomes) {}

  Status Start(Context& context) override;
  Status Handle(AnyMessage message, Context& context) override;

 private:
  void Plan(size_t call, Context& context);
  void Make(size_t call, Context& context);
  // Whether the call may be made now; otherwise it is scheduled again.
  bool MayMake(size_t call) const;
  void OnAnswer(const ClientFrame& frame, Context& context);

  World& world_;
  CatalogObserver& observer_;
  const NodeId node_;
  const NodeId coordinator_;
  std::vector<PlannedCall> calls_;
  std::vector<CallOutcome>& outcomes_;
  std::vector<bool> due_;
  StreamId stream_;
  bool open_ = false;
};

}  // namespace troupe::simulation

#endif  // TROUPE_TESTS_SIMULATION_CLIENT_PROCESS_H_
