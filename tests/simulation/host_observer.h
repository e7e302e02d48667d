// Observes, from the coordinator's own knowledge, which hosts it chooses and how many: it must not
// choose a bad host again and again while a healthy spare is free, and a shrunk job must grow back.
#ifndef TROUPE_TESTS_SIMULATION_HOST_OBSERVER_H_
#define TROUPE_TESTS_SIMULATION_HOST_OBSERVER_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "coordinator/machine/machine.h"
#include "tests/simulation/catalog_observer.h"
#include "tests/simulation/world.h"

namespace troupe::simulation {

class HostObserver {
 public:
  HostObserver(World& world, const CatalogObserver& catalog) : world_(world), catalog_(catalog) {}

  void CoordinatorStarts();
  // A worker's message arrives; called before the coordinator acts on it.
  void Hears(const v1::WorkerMessage& message, SessionId session, const CoordinatorState& state);
  // Called after each event; `now` is on the coordinator's clock.
  void Observe(const CoordinatorState& state, MonotonicTime now);

  // Number of groups that began with fewer ranks than submitted, and of those that grew again.
  uint64_t shrinks() const { return shrinks_; }
  uint64_t growths() const { return growths_; }
  // Number of groups that failed because of a bad host.
  uint64_t strikes() const;
  // Number of hangs that were blamed on one rank.
  uint64_t blamed_hangs() const { return blamed_hangs_; }
  // Number of groups that ended because a worker sent a Goodbye.
  uint64_t goodbyes() const { return goodbyes_; }

 private:
  // A hang of the job's newest group, from its discovery until its cause is recorded.
  struct Hang {
    std::string last_failure;    // the job's, before
    std::set<int32_t> reported;  // ranks whose flight reports have arrived
  };
  struct JobView {
    uint64_t epoch = 0;  // newest group seen
    int ranks = 0;
    std::optional<MonotonicTime> could_grow_since;
    std::optional<Hang> hang;
  };

  void OnNewGroup(const Job& job, const CoordinatorState& state);
  // Whether a job waits before this one for which the cluster has enough devices.
  bool IsOutranked(const Job& job, const CoordinatorState& state) const;
  // Checks that no host is blamed for a write that neither failed nor hung there.
  void CheckBlame(const Fleet& fleet);
  // Checks that no hang is blamed on a rank that has reported that it waited.
  void CheckHangs(const CoordinatorState& state);
  // Checks that no worker is blamed as lost between its goodbye and its next Hello.
  void CheckStops(const Fleet& fleet);
  void CheckGrowth(const Job& job, int free_devices, MonotonicTime now, JobView& view);
  int SubmittedRanks(const std::string& job) const;

  World& world_;
  const CatalogObserver& catalog_;
  std::map<std::string, JobView> jobs_;
  // By worker: the group epochs in which a rank there failed by itself.
  std::map<std::string, std::set<std::pair<std::string, uint64_t>>> strikes_;
  // The workers that have sent a Goodbye and are not back, with the losses blamed on them before.
  std::map<std::string, int64_t> stops_;
  uint64_t blamed_hangs_ = 0;
  uint64_t goodbyes_ = 0;
  uint64_t shrinks_ = 0;
  uint64_t growths_ = 0;
};

}  // namespace troupe::simulation

#endif  // TROUPE_TESTS_SIMULATION_HOST_OBSERVER_H_
