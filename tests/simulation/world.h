// The environment that the simulated processes share: devices, data plane, mounted storage, the
// jobs' nature, and the truth by which they are judged.
#ifndef TROUPE_TESTS_SIMULATION_WORLD_H_
#define TROUPE_TESTS_SIMULATION_WORLD_H_

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "actor/sim/random.h"
#include "actor/sim/system.h"
#include "base/time_limits.h"
#include "tests/simulation/collective_bus.h"
#include "tests/simulation/mix.h"
#include "tests/simulation/storage.h"
#include "tests/simulation/truth.h"
#include "troupe/v1/job.pb.h"
#include "troupe/v1/worker.pb.h"
#include "worker/daemon/event_sender.h"

namespace troupe::simulation {

// The behaviour of a job when it runs.
struct JobNature {
  uint64_t seed = 0;
  Duration step_time{};
  Duration longest_save{};    // a save in the background takes at most this
  int64_t crash_at_step = 0;  // its rank 0 dies at this step on every attempt; 0: never
};

// A rank's process on a device.
struct RankLife {
  NodeId node;
  std::string worker;
  int device = 0;
  GroupName group;
  int rank = 0;
};

// The writes of a host's ranks to the folders of checkpoints, and its removals there, block.
struct BlockedWrites {
  MonotonicTime until;   // on the system's clock; max(): for ever
  bool killable = true;  // whether a rank blocked in a write can be killed before `until`
};

// An image of a rank's state on its worker, which outlives the worker's daemon.
struct SavedImage {
  Restored state;
  v1::HeldImage held;
};

// Probabilities of faults inside workers; zero once healed.
struct RankFaults {
  double crash_per_step = 0;
  double hang_per_step = 0;
  double shard_failure = 0;
  double unreadable_commit = 0;  // share of the commits read back
};

// Known bugs of workers and ranks, reintroduced to show that the simulation catches them.
struct WorkerBugs {
  bool number_lives_by_clock = false;  // even if the clock went back
  bool trust_folders = false;  // no proof at the start, no identity check, no check of shards
};

class World {
 public:
  World(SimulatedSystem& the_system, uint64_t seed, const TimeLimits& the_limits)
      : system(the_system),
        limits(the_limits),
        storage(truth),
        bus(the_system, truth, seed),
        random(seed, "world") {
    system.OnCrash([this](NodeId node, CrashKind kind) { EndNode(node, kind); });
  }

  // Begins a rank's process and returns its number. Breaks invariant 14 if its device has a living
  // one.
  uint64_t Begin(RankLife life) {
    for (const auto& [number, other] : lives_) {
      truth.Check(
          other.worker != life.worker || other.device != life.device, 14,
          fmt::format("{} epoch {} rank {} starts on {} device {}, where {} epoch {} rank {} lives",
                      life.group.job, life.group.epoch, life.rank, life.worker, life.device,
                      other.group.job, other.group.epoch, other.rank));
    }
    lives_.emplace(++last_number_, std::move(life));
    return last_number_;
  }

  // Ends the process; its peers learn of it within `limit`.
  void End(uint64_t number, Duration limit) {
    const auto found = lives_.find(number);
    if (found == lives_.end()) return;
    const RankLife life = std::move(found->second);
    lives_.erase(found);
    bus.Leave(life.group, life.rank, limit);
  }

  // Whether `address`, the number of a life, belongs to a living rank other than this one.
  bool IsStrange(const std::string& address, const GroupName& group, int rank) const {
    const auto found = lives_.find(std::strtoull(address.c_str(), nullptr, 10));
    return found != lives_.end() && (found->second.group != group || found->second.rank != rank);
  }

  // The additional time that writes block on `worker`; max(): for ever.
  Duration BlockedFor(const std::string& worker) const {
    const auto found = blocked_writes.find(worker);
    if (found == blocked_writes.end()) return Duration::zero();
    if (found->second.until == MonotonicTime::max()) return Duration::max();
    return std::max(Duration::zero(), found->second.until - system.Now());
  }

  HostFault FaultOf(const std::string& worker) const {
    const auto found = bad_hosts.find(worker);
    return found == bad_hosts.end() ? HostFault::kNone : found->second;
  }

  SimulatedSystem& system;
  const TimeLimits limits;
  Truth truth;
  Storage storage;
  CollectiveBus bus;
  SeededRandom random;  // for events inside workers
  RankFaults faults;
  WorkerBugs bugs;
  std::map<std::string, v1::JobSpec> specs;             // as first submitted, by job id
  std::map<std::string, JobNature> natures;             // by job id
  std::map<std::string, HostFault> bad_hosts;           // by worker
  std::set<std::string> lost_mounts;                    // workers that ever lost the shared folder
  std::map<std::string, BlockedWrites> blocked_writes;  // by worker
  std::set<std::string> failed_writers;                 // workers where a write ever failed or hung
  std::map<std::string, SavedImage> images;  // images of ranks' states on their workers, by path
  // The paths of the images from which jobs would continue, by job, as the catalog has them.
  std::map<std::string, std::set<std::string>> needed_images;
  uint64_t steps_applied = 0;  // by all ranks
  uint64_t reports_during_saves = 0;
  uint64_t hung_saves = 0;     // saves that blocked
  uint64_t waiting_saves = 0;  // saves that waited for an earlier one of the same rank
  uint64_t clocks_set_back = 0;
  uint64_t lies = 0;

 private:
  void EndNode(NodeId node, CrashKind kind) {
    std::vector<uint64_t> over;
    for (const auto& [number, life] : lives_) {
      if (life.node == node) over.push_back(number);
    }
    // Sockets of a killed process close at once; a lost host is detected by missing heartbeats.
    for (const uint64_t number : over) {
      End(number,
          kind == CrashKind::kProcess ? Duration(std::chrono::milliseconds(100)) : limits.lease);
    }
  }

  std::map<uint64_t, RankLife> lives_;
  uint64_t last_number_ = 0;
};

// Returns a duration in [low, high], drawn from the actor's own stream.
inline Duration DrawDuration(Context& context, Duration low, Duration high) {
  return low + Duration(static_cast<int64_t>(context.RandomBits() %
                                             (static_cast<uint64_t>((high - low).count()) + 1)));
}

// Makes the sender of events to the session that owns this actor, a part of a simulated daemon.
inline std::unique_ptr<EventSender> MakeEventSender(World& world, Context& context) {
  return std::make_unique<EventSender>(
      [&system = world.system, session = context.owner()](AnyMessage message) {
        return system.Send(session, std::move(message));
      });
}

}  // namespace troupe::simulation

#endif  // TROUPE_TESTS_SIMULATION_WORLD_H_
