// A cluster in one thread on virtual time: nodes that crash and restart, actors on them, streams
// between them.
//
// The actors are those of the product (actor/actor.h); what differs is who runs them. One seed
// decides everything that the product leaves open: which of several ready actors runs first, how
// long a message travels, what is lost or doubled, where a crash cuts. A seed therefore replays its
// run exactly, which trace().hash() shows.
//
// A node has a volatile half, its actors, and a durable half, its store; a crash ends the first and
// takes from the second what was not synced. Each node's monotonic clock has its own origin and
// runs up to 0.1% too quick or slow; its wall clock is right until it is shifted.
//
// Not thread-safe, and in need of no threads.
#ifndef TROUPE_ACTOR_SIM_SYSTEM_H_
#define TROUPE_ACTOR_SIM_SYSTEM_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "actor/actor.h"
#include "actor/mailbox.h"
#include "actor/sim/network.h"
#include "actor/sim/node.h"
#include "actor/sim/random.h"
#include "actor/sim/trace.h"
#include "base/clock.h"
#include "base/memory_store.h"
#include "base/status.h"

namespace troupe {

struct SimulationOptions {
  uint64_t seed = 0;
  NetworkOptions network;
  // How many of the last events Trace::Text shows.
  size_t kept_events = 2000;
};

class SimulatedSystem {
 public:
  explicit SimulatedSystem(SimulationOptions options);
  ~SimulatedSystem();

  SimulatedSystem(const SimulatedSystem&) = delete;
  SimulatedSystem& operator=(const SimulatedSystem&) = delete;

  // Virtual time; no node sees it.
  MonotonicTime Now() const { return now_; }
  Trace& trace() { return trace_; }
  SeededRandom& random() { return random_; }
  SimulatedNetwork& network() { return *network_; }

  // Calls `what` after `delay`; calls due at the same time come in the order in which they were
  // scheduled.
  void Schedule(Duration delay, std::function<void()> what);

  // Runs the next thing that is due; false when nothing is left.
  bool RunNext();
  // Runs all that is due within `time` from now, at most `max_events` events. False if it stopped
  // at that limit.
  bool RunFor(Duration time, uint64_t max_events = UINT64_MAX);

  // A node that is down until Start. `boot` spawns its first actors at each start.
  NodeId AddNode(std::string name, NodeBoot boot);
  size_t nodes() const { return nodes_.size(); }
  bool IsUp(NodeId node) const;
  const std::string& NodeName(NodeId node) const;
  // How often it has been started.
  uint64_t Boots(NodeId node) const;
  // The node's disk, also while it is down.
  MemoryStore& Disk(NodeId node);

  // Without effect on a node that is up.
  void Start(NodeId node);
  // The process (or the whole host, silently for its peers) dies now, in the middle of a handler
  // too: of what that handler still does nothing takes effect. Without effect on a node that is
  // down.
  void Crash(NodeId node, CrashKind kind);
  // The node crashes at its next write to the store that changes a key with this prefix: before it,
  // or right after it became durable.
  void CrashAtNextWrite(NodeId node, WriteCrash where, std::string key_prefix = "");
  void CancelCrashAtWrite(NodeId node);
  // Sets the node's wall clock forward by `shift`, or back where that is negative. Its monotonic
  // clock goes on as before.
  void ShiftWallClock(NodeId node, Duration shift);

  // Called when a root actor ended by itself (not by a crash of its node).
  void OnRootEnd(
      std::function<void(NodeId node, std::string_view name, const Status& cause)> call) {
    on_root_end_ = std::move(call);
  }

  // Called at each crash, after the node's actors are gone.
  void OnCrash(std::function<void(NodeId node, CrashKind kind)> call) {
    on_crash_ = std::move(call);
  }
  // Called when a batch is on a node's disk and nobody has been told yet.
  void OnWrite(std::function<void(NodeId node, const WriteBatch& batch)> call) {
    on_write_ = std::move(call);
  }

  // Makes a root actor on `node`. UNAVAILABLE when the node is down.
  StatusOr<Address> Spawn(NodeId node, std::string name, std::unique_ptr<Actor> actor,
                          SpawnOptions options = {});
  // As Context::Send.
  Status Send(Address to, AnyMessage message);
  // As Send, but the actor handles it now if nothing else waits for it: for the network, whose
  // delays have decided the order already.
  Status Deliver(Address to, AnyMessage message);

 private:
  struct Cell;
  struct Node;
  class Activation;
  class NodeStore;

  struct Due {
    MonotonicTime time;
    uint64_t sequence = 0;
    std::function<void()> what;
  };
  struct Later {
    bool operator()(const Due& a, const Due& b) const {
      return a.time != b.time ? a.time > b.time : a.sequence > b.sequence;
    }
  };

  StatusOr<Address> SpawnOwned(NodeId node, std::string name, std::unique_ptr<Actor> actor,
                               SpawnOptions options, Address owner);
  // Null when it has ended.
  std::shared_ptr<Cell> Find(Address address) const;
  void Notify(Address to, Envelope notice);
  void MakeReady(const std::shared_ptr<Cell>& cell);
  // Handles the oldest envelope of the cell.
  void RunCell(const std::shared_ptr<Cell>& cell);
  void HandleOne(Cell& cell, Envelope envelope);
  void BeginEnd(Cell& cell);
  void Release(Cell& cell);
  MonotonicTime NodeTime(const Node& node) const;
  int64_t WallTime(const Node& node) const;

  const SimulationOptions options_;
  SeededRandom random_;
  Trace trace_;
  MonotonicTime now_;
  uint64_t next_sequence_ = 0;
  std::vector<Due> due_;  // a heap by Later
  std::vector<std::unique_ptr<Node>> nodes_;
  std::unordered_map<uint64_t, std::shared_ptr<Cell>> cells_;
  uint64_t next_address_ = 1;
  std::function<void(NodeId, std::string_view, const Status&)> on_root_end_;
  std::function<void(NodeId, CrashKind)> on_crash_;
  std::function<void(NodeId, const WriteBatch&)> on_write_;
  std::unique_ptr<SimulatedNetwork> network_;
};

}  // namespace troupe

#endif  // TROUPE_ACTOR_SIM_SYSTEM_H_
