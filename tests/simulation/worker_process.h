// A worker daemon as a simulated process: the product's session machine (worker/session) in a shell
// that does what the daemon's shell does, with models of ranks (rank_model.h) in place of rank
// processes.
//
// Its state is volatile except the number of its last life: a crash of its node ends both the
// daemon and its ranks.
#ifndef TROUPE_TESTS_SIMULATION_WORKER_PROCESS_H_
#define TROUPE_TESTS_SIMULATION_WORKER_PROCESS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "actor/actor.h"
#include "actor/sim/network.h"
#include "base/store/store.h"
#include "tests/simulation/rank_model.h"
#include "tests/simulation/world.h"
#include "worker/session/session.h"

namespace troupe::simulation {

// Tells a daemon to stop, as a signal does. The daemon's actor then ends with OK.
struct StopDaemon {
  static constexpr std::string_view kMessageName = "worker.stop_daemon";
};

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

 private:
  StatusOr<uint64_t> NextIncarnation(Context& context);
  // Handles a message about a rank or its process.
  Status HandleRank(AnyMessage message, Context& context);
  // Performs the coordinator's request on a checkpoint, after the time that this takes.
  Status Remove(const v1::DeleteCheckpoint& request, Context& context);
  Status ReadCheckpoint(const v1::VerifyCheckpoint& request, Context& context);
  // Passes one event to the machine and performs its effects in order.
  template <typename What>
  Status Run(What what, Context& context);
  Status Perform(session::Effect& effect, Context& context);
  void SetAlarm(Context& context);
  // The rank process of that life on that device; null if it is gone.
  RankModel* FindProcess(int device, uint64_t life);

  World& world_;
  const NodeId node_;
  Store& store_;
  const std::string name_;
  const int devices_;
  const NodeId coordinator_;
  session::State state_;
  TimerId alarm_;
  MonotonicTime alarm_time_ = MonotonicTime::max();
  // The stream in use: the machine's number and the network's.
  uint64_t stream_number_ = 0;
  StreamId stream_;
  v1::WorkerMessage hello_;
  struct Process {
    uint64_t life = 0;
    std::unique_ptr<RankModel> rank;  // null: not running
  };
  std::vector<Process> processes_;  // by device
};

}  // namespace troupe::simulation

#endif  // TROUPE_TESTS_SIMULATION_WORKER_PROCESS_H_
