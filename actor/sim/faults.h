// Breaks a simulated cluster by its seed for a while, then heals it: faults first, liveness after.
//
// In the fault phase, at exponentially spaced times, one fault is drawn by weight; each ends by
// itself after a while (a crashed node starts again, a blocked link opens). At the end of the phase
// everything is healed and stays so, except for leaves that left for good and shifted wall clocks.
#ifndef TROUPE_ACTOR_SIM_FAULTS_H_
#define TROUPE_ACTOR_SIM_FAULTS_H_

#include <chrono>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "actor/sim/node.h"
#include "actor/sim/random.h"
#include "actor/sim/system.h"
#include "base/clock.h"

namespace troupe {

struct FaultOptions {
  uint64_t seed = 0;
  // How long faults go on.
  Duration phase = std::chrono::seconds(60);
  Duration mean_between = std::chrono::seconds(4);
  // How long a crashed node stays down, a link blocked, a node slow.
  Duration min_length = std::chrono::milliseconds(200);
  Duration max_length = std::chrono::seconds(20);
  Duration max_slowness = std::chrono::seconds(1);
  // Faults whose weight is 0 do not happen.
  struct Weights {
    int crash_hub = 2;  // the hub's process or host
    int crash_hub_write =
        2;  // the hub at its next write to the store, before or after it is durable
    int crash_leaf = 3;
    int isolate_leaf = 2;  // both directions between it and the hub
    int one_way = 2;       // one direction between a leaf and the hub
    int isolate_hub = 1;   // all leaves at once
    int slow_node = 1;
    int break_stream = 2;
    int leave_leaf = 0;   // its host is lost and never comes back
    int shift_clock = 0;  // a node's wall clock jumps back or forward
  } weights;
  // Leaves that may leave for good, in all.
  int max_leavers = 0;
  Duration max_clock_shift = std::chrono::hours(2);
  // A crash at a write waits for one that changes a key with a prefix drawn from these.
  std::vector<std::string> write_prefixes = {""};
  // Per message, in the fault phase.
  double loss = 0.0005;
  double duplication = 0.01;
};

// A star of nodes: a hub and leaves that dial it. Keep it alive as long as the system runs.
class FaultInjector {
 public:
  FaultInjector(SimulatedSystem& system, NodeId hub, std::vector<NodeId> leaves,
                FaultOptions options);

  // Begins the fault phase now. The nodes must have been started.
  void Begin();
  bool healed() const { return healed_; }
  // What was done, oldest first: "12.500000 crash worker-3 process".
  const std::vector<std::string>& log() const { return log_; }
  // For faults of the caller's own, so that one log tells them all.
  void Log(std::string line);

 private:
  void DrawNext();
  void Strike();
  void CrashFor(NodeId node, CrashKind kind, Duration length);
  // Without effect on a node that has left for good.
  void Restart(NodeId node);
  // Until `until` the hub may crash at a write; once it has, it starts again after `length`.
  void AwaitCrash(MonotonicTime until, Duration length);
  void BlockFor(NodeId from, NodeId to, Duration length);
  void Heal();
  Duration Length();
  NodeId Leaf();

  SimulatedSystem& system_;
  const NodeId hub_;
  const std::vector<NodeId> leaves_;
  const FaultOptions options_;
  SeededRandom random_;
  MonotonicTime end_;
  bool healed_ = false;
  std::map<uint64_t, std::function<void()>>
      undo_;  // what still has to be healed, by the number of its fault
  uint64_t next_fault_ = 0;
  std::set<NodeId> left_;  // for good
  std::vector<std::string> log_;
};

}  // namespace troupe

#endif  // TROUPE_ACTOR_SIM_FAULTS_H_
