// Injects faults into a simulated cluster from a seed, then heals it, so that a test can check
// liveness afterwards.
//
// In the fault phase, faults begin at exponentially distributed intervals. Each is drawn by weight
// and ends by itself (a crashed node restarts, a blocked link opens). At the end of the phase
// everything is healed and stays healed, except for leaves that left permanently and shifted wall
// clocks.
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
  // The duration of the fault phase.
  Duration phase = std::chrono::seconds(60);
  Duration mean_between = std::chrono::seconds(4);
  // Bounds of the time for which a crashed node is down, a link is blocked or a node is slow.
  Duration min_length = std::chrono::milliseconds(200);
  Duration max_length = std::chrono::seconds(20);
  Duration max_slowness = std::chrono::seconds(1);
  // A fault of weight 0 never happens.
  struct Weights {
    int crash_hub = 2;  // the hub's process or host
    int crash_hub_write =
        2;  // the hub at its next write to the store, before or after it is durable
    int crash_leaf = 3;
    int isolate_leaf = 2;  // both directions between the leaf and the hub
    int one_way = 2;       // one direction between a leaf and the hub
    int isolate_hub = 1;   // all leaves at once
    int slow_node = 1;
    int break_stream = 2;
    int leave_leaf = 0;   // its host is lost permanently
    int shift_clock = 0;  // a node's wall clock jumps back or forward
  } weights;
  // The maximum number of leaves that may leave permanently.
  int max_leavers = 0;
  Duration max_clock_shift = std::chrono::hours(2);
  // A crash at a write waits for a write to a key with a prefix drawn from this list.
  std::vector<std::string> write_prefixes = {""};
  // The probability per message during the fault phase.
  double loss = 0.0005;
  double duplication = 0.01;
};

// A star topology: a hub and leaves that dial it. The injector must outlive the run of the system.
class FaultInjector {
 public:
  FaultInjector(SimulatedSystem& system, NodeId hub, std::vector<NodeId> leaves,
                FaultOptions options);

  // Begins the fault phase now. REQUIRES: the nodes have been started.
  void Begin();
  bool healed() const { return healed_; }
  // The injected faults, oldest first, for example "12.500000 crash worker-3 process".
  const std::vector<std::string>& log() const { return log_; }
  // Adds a fault that the caller injects itself, so that one log holds all faults.
  void Log(const std::string& line);

 private:
  void DrawNext();
  // Injects one fault, drawn by weight.
  void Strike();
  // The faults, in the order of FaultOptions::Weights.
  void CrashHub();
  void CrashHubAtWrite();
  void CrashLeaf();
  void IsolateLeaf();
  void BlockOneWay();
  void IsolateHub();
  void SlowNode();
  void BreakStream();
  void LoseLeaf();
  void ShiftClock();
  void CrashFor(NodeId node, CrashKind kind, Duration length);
  // No effect on a node that has left permanently.
  void Restart(NodeId node);
  // Until `until` the hub may crash at a write; after such a crash it restarts after `length`.
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
      undo_;  // undo functions of active faults, by fault number
  uint64_t next_fault_ = 0;
  std::set<NodeId> left_;  // permanently
  std::vector<std::string> log_;
};

}  // namespace troupe

#endif  // TROUPE_ACTOR_SIM_FAULTS_H_
