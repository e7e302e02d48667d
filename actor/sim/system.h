// A cluster on virtual time in one thread: nodes that crash and restart, actors on them, and
// streams between them.
//
// Runs the product's actors (actor/actor.h) unchanged. One seed decides everything that the product
// leaves open: which of several ready actors runs first, how long a message travels, which messages
// are lost or duplicated, and when a crash happens. A seed therefore replays its run exactly;
// trace().hash() proves it.
//
// A node consists of volatile actors and a durable store; a crash destroys the actors and discards
// unsynced writes of the store. Each node's monotonic clock has its own origin and runs up to 0.1%
// fast or slow; its wall clock is exact until it is shifted.
//
// Not thread-safe; it uses no threads.
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
#include "base/status.h"
#include "base/store/memory_store.h"

namespace troupe {

struct SimulationOptions {
  uint64_t seed = 0;
  NetworkOptions network;
  // The number of last events that Trace::Text shows.
  size_t kept_events = 2000;
};

class SimulatedSystem final : public NetworkHost {
 public:
  explicit SimulatedSystem(SimulationOptions options);
  ~SimulatedSystem() override;

  SimulatedSystem(const SimulatedSystem&) = delete;
  SimulatedSystem& operator=(const SimulatedSystem&) = delete;

  // Virtual time; nodes never see it.
  MonotonicTime Now() const override { return now_; }
  Trace& trace() override { return trace_; }
  SeededRandom& random() override { return random_; }
  SimulatedNetwork& network() { return *network_; }

  // Calls `what` after `delay`. Calls due at the same time run in the order in which they were
  // scheduled.
  void Schedule(Duration delay, std::function<void()> what) override;

  // Runs the next scheduled call; false when nothing is left.
  bool RunNext();
  // Runs all calls due within `time` from now, but at most `max_events`. False if it stopped at
  // that limit.
  bool RunFor(Duration time, uint64_t max_events = UINT64_MAX);

  // Adds a node that is down until Start. `boot` spawns its first actors at each start.
  NodeId AddNode(std::string name, NodeBoot boot);
  size_t nodes() const { return nodes_.size(); }
  bool IsUp(NodeId node) const override;
  const std::string& NodeName(NodeId node) const;
  // The number of times that the node has been started.
  uint64_t Boots(NodeId node) const;
  // The node's disk; valid also while the node is down.
  MemoryStore& Disk(NodeId node);

  // No effect on a node that is up.
  void Start(NodeId node);
  // The process dies now (or the whole host, silently for its peers), even in the middle of a
  // handler: nothing that the handler does afterwards takes effect. No effect on a node that is
  // down.
  void Crash(NodeId node, CrashKind kind);
  // The node crashes at its next write to the store that changes a key with this prefix: before the
  // write, or right after it became durable.
  void CrashAtNextWrite(NodeId node, WriteCrash where, std::string key_prefix = "");
  void CancelCrashAtWrite(NodeId node);
  // Shifts the node's wall clock by `shift`, which may be negative. Its monotonic clock is
  // unaffected.
  void ShiftWallClock(NodeId node, Duration shift);

  // Called when a root actor ended by itself, not by a crash of its node.
  void OnRootEnd(
      std::function<void(NodeId node, std::string_view name, const Status& cause)> call) {
    on_root_end_ = std::move(call);
  }

  // Called at each crash, after the node's actors are gone.
  void OnCrash(std::function<void(NodeId node, CrashKind kind)> call) {
    on_crash_ = std::move(call);
  }
  // Called when a batch is durable on a node's disk, before anybody is notified.
  void OnWrite(std::function<void(NodeId node, const WriteBatch& batch)> call) {
    on_write_ = std::move(call);
  }

  // Creates a root actor on `node`. UNAVAILABLE when the node is down.
  StatusOr<Address> Spawn(NodeId node, std::string name, std::unique_ptr<Actor> actor,
                          SpawnOptions options = {});
  // See Context::Send.
  Status Send(Address to, AnyMessage message) override;
  // Like Send, but the actor handles the message now if nothing else waits for it. For those that
  // have already decided the order by their delays, such as the network.
  Status Deliver(Address to, AnyMessage message) override;

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
  // Null when the actor has ended.
  std::shared_ptr<Cell> Find(Address address) const;
  void Notify(Address to, Envelope notice);
  void MakeReady(const std::shared_ptr<Cell>& cell);
  // Handles the oldest envelope of `cell`.
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
