// The collectives of all groups on virtual time: one reduction over all ranks per step. Its result
// reaches each rank at a different time or, if a rank is gone, as a failure.
#ifndef TROUPE_TESTS_SIMULATION_COLLECTIVE_BUS_H_
#define TROUPE_TESTS_SIMULATION_COLLECTIVE_BUS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "actor/actor.h"
#include "actor/sim/random.h"
#include "actor/sim/system.h"
#include "tests/simulation/truth.h"

namespace troupe::simulation {

// A group is identified by its epoch and its key: ranks with another key are strangers.
struct GroupName {
  std::string job;
  uint64_t epoch = 0;
  std::string key;
  auto operator<=>(const GroupName&) const = default;
};

struct Contribution {
  int64_t step = 0;
  uint64_t gradient = 0;
  int64_t ticket_end = 0;
  int64_t highest_request = 0;  // highest requested attempt
  bool knows_intent = false;    // the intent of the checkpoint due after this step
};

struct Word {
  int64_t step = 0;
  uint64_t gradient = 0;  // sum of the gradients
  int64_t min_ticket_end = 0;
  int64_t min_highest_request = 0;
  bool all_know_intent = false;
};

// Messages to the actor of a rank's worker; `rank` is the number given to Join.
struct GroupFormed {
  static constexpr std::string_view kMessageName = "group.formed";
  uint64_t rank = 0;
};
struct Reduced {
  static constexpr std::string_view kMessageName = "group.reduced";
  uint64_t rank = 0;
  Word word;
};
struct GroupBroken {
  static constexpr std::string_view kMessageName = "group.broken";
  uint64_t rank = 0;
};

class CollectiveBus {
 public:
  CollectiveBus(SimulatedSystem& system, Truth& truth, uint64_t seed)
      : system_(system), truth_(truth), random_(seed, "collectives") {}

  // Rank `rank` of `ranks` has arrived; messages about the group go to `worker` with `number`.
  // GroupFormed comes when all have arrived. A group that broke once stays broken.
  void Join(const GroupName& name, int rank, int ranks, Address worker, uint64_t number);
  void Arrive(const GroupName& name, int rank, const Contribution& contribution);
  // The rank's process is gone, or it gave up: the others learn of it within `limit`.
  void Leave(const GroupName& name, int rank, Duration limit);
  // Whether the rank has arrived at a reduction at which another rank has not. A broken group stays
  // as it was when it broke.
  bool Waits(const std::string& job, uint64_t epoch, int rank) const;

 private:
  struct Member {
    bool present = false;
    Address worker;
    uint64_t number = 0;
    std::optional<Contribution> arrived;
  };
  struct Group {
    std::vector<Member> members;
    int present = 0;
    int arrived = 0;
    bool broken = false;
  };

  template <typename Body>
  void Notify(const Member& member, Duration limit, Body body);

  SimulatedSystem& system_;
  Truth& truth_;
  SeededRandom random_;
  std::map<GroupName, Group> groups_;
};

}  // namespace troupe::simulation

#endif  // TROUPE_TESTS_SIMULATION_COLLECTIVE_BUS_H_
