// A worker daemon as a simulated process: the product's session actor
// (worker/daemon/session_actor.h) on virtual time, with models of its parts (link_model.h,
// disk_model.h, burn_in_model.h) and of rank processes (rank_model.h).
//
// Its state is volatile except the number of its last life: a crash of its node ends both the
// daemon and its ranks.
#ifndef TROUPE_TESTS_SIMULATION_WORKER_PROCESS_H_
#define TROUPE_TESTS_SIMULATION_WORKER_PROCESS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "actor/actor.h"
#include "base/last_sign.h"
#include "base/store/store.h"
#include "tests/simulation/world.h"
#include "worker/daemon/session_actor.h"

namespace troupe::simulation {

// Its mailbox has kSessionCapacity. It ends as the session actor does: with OK after
// session::Leave.
class WorkerProcess final : public Actor {
 public:
  WorkerProcess(World& world, NodeId node, Store& store, std::string name, int devices,
                NodeId coordinator)
      : world_(world),
        node_(node),
        store_(store),
        name_(std::move(name)),
        devices_(devices),
        coordinator_(coordinator) {}

  Status Start(Context& context) override;
  Status Handle(AnyMessage message, Context& context) override;
  Status HandleEnd(Address child, const Status& cause, Context& context) override;

 private:
  // The ranks' metrics are not modelled.
  class NoTotals final : public RankTotals {
   public:
    void Restart(int, const std::string&) override {}
    void Add(int, const v1::RankMetrics&) override {}
    void KeepJobs(const std::set<std::string>&, MonotonicTime) override {}
  };

  v1::Hello Identity(uint64_t incarnation) const;
  StatusOr<uint64_t> NextIncarnation(Context& context);

  World& world_;
  const NodeId node_;
  Store& store_;
  const std::string name_;
  const int devices_;
  const NodeId coordinator_;
  NoTotals totals_;
  LastSign works_;
  std::unique_ptr<SessionActor> session_;
};

}  // namespace troupe::simulation

#endif  // TROUPE_TESTS_SIMULATION_WORKER_PROCESS_H_
