// A worker that has no part in any job but answers requests that others got, with the right names,
// epochs and paths.
//
// It has no device, so it never gets a part in a job. Like every worker it may be asked to read a
// doubtful commit; it answers that honestly and sends no more lies about that commit.
#ifndef TROUPE_TESTS_SIMULATION_STRANGER_PROCESS_H_
#define TROUPE_TESTS_SIMULATION_STRANGER_PROCESS_H_

#include <set>
#include <string>

#include "actor/actor.h"
#include "actor/sim/network.h"
#include "tests/simulation/catalog_observer.h"
#include "tests/simulation/world.h"

namespace troupe::simulation {

inline constexpr const char* kStrangerName = "stranger";

inline bool IsStranger(const std::string& worker) { return worker == kStrangerName; }

class StrangerProcess final : public Actor {
 public:
  // It takes its messages from `observer`: a stranger may know everything.
  StrangerProcess(World& world, const CatalogObserver& observer, NodeId node, NodeId coordinator)
      : world_(world), observer_(observer), node_(node), coordinator_(coordinator) {}

  Status Start(Context& context) override;
  Status Handle(AnyMessage message, Context& context) override;

 private:
  void Dial(Context& context);
  // A message on a stream that is over is lost.
  void WriteToCoordinator(v1::WorkerMessage message, Context& context);
  // Sends one lie about one job.
  void Lie(Context& context);
  void Answer(const v1::VerifyCheckpoint& request, Context& context);
  void LieAbout(const v1::CheckpointRecord& record, uint64_t kind, Context& context);
  void LieAbout(const v1::JobRecord& job, uint64_t kind, Context& context);

  World& world_;
  const CatalogObserver& observer_;
  const NodeId node_;
  const NodeId coordinator_;
  StreamId stream_;
  uint64_t leader_epoch_ = 0;
  bool welcome_ = false;
  std::set<std::string> asked_;  // paths of checkpoints
};

}  // namespace troupe::simulation

#endif  // TROUPE_TESTS_SIMULATION_STRANGER_PROCESS_H_
