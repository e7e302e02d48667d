// Faults of a run in addition to crashes and links: commits that rot, lost mounts, writes that
// hang, bad hosts, workers that are asked to stop, and a lost disk of the coordinator, after which
// its operator rebuilds the catalog.
#ifndef TROUPE_TESTS_SIMULATION_MISHAPS_H_
#define TROUPE_TESTS_SIMULATION_MISHAPS_H_

#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "actor/sim/faults.h"
#include "actor/sim/random.h"
#include "tests/simulation/catalog_observer.h"
#include "tests/simulation/client_process.h"
#include "tests/simulation/mix.h"
#include "tests/simulation/world.h"

namespace troupe::simulation {

class Mishaps {
 public:
  // `ask` gives the client further calls, `stop` asks a worker to stop. All arguments outlive the
  // system's last event.
  Mishaps(World& world, CatalogObserver& catalog, FaultInjector& faults, NodeId coordinator,
          std::vector<NodeId> workers, const Mix& mix, uint64_t seed,
          std::function<void(std::vector<PlannedCall>)> ask,
          std::function<void(const std::string& worker)> stop)
      : world_(world),
        catalog_(catalog),
        faults_(faults),
        coordinator_(coordinator),
        workers_(std::move(workers)),
        mix_(mix),
        random_(seed, "mishaps"),
        hangs_(seed, "hung writes"),
        stops_(seed, "planned stops"),
        ask_(std::move(ask)),
        stop_(std::move(stop)) {}

  // Draws all faults for the next `phase`.
  void Begin(Duration phase, Duration unit);
  // Ends the phase: mounts are restored. Bad hosts stay bad.
  void Heal();

  bool lost_catalog() const { return lost_catalog_; }
  // Whether the operator, if needed, has requested everything that can be rebuilt; and the number
  // of calls for that.
  bool is_over() const { return !lost_catalog_ || is_rebuilt_; }
  size_t further_calls() const { return further_calls_; }
  // Jobs of the lost catalog that the operator found in the folder of checkpoints.
  const std::set<std::string>& rebuilt() const { return rebuilt_; }

 private:
  void CorruptACommit();
  void LoseAMount(Duration unit);
  void HangWrites(Duration unit);
  void StopAWorker();
  // A random worker with a leased device; empty if there is none.
  std::string LeasedHost(SeededRandom& random) const;
  void LoseCatalog(Duration unit);
  void Rebuild();

  World& world_;
  CatalogObserver& catalog_;
  FaultInjector& faults_;
  const NodeId coordinator_;
  const std::vector<NodeId> workers_;
  const Mix mix_;
  SeededRandom random_;
  // Streams of their own, so that these faults change nothing else of a seed.
  SeededRandom hangs_;
  SeededRandom stops_;
  bool hangs_for_ever_ = false;  // the writes of one host do
  const std::function<void(std::vector<PlannedCall>)> ask_;
  const std::function<void(const std::string& worker)> stop_;
  bool lost_catalog_ = false;
  bool is_rebuilt_ = false;
  size_t further_calls_ = 0;
  std::set<std::string> rebuilt_;
};

}  // namespace troupe::simulation

#endif  // TROUPE_TESTS_SIMULATION_MISHAPS_H_
