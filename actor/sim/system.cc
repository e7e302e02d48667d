#include "actor/sim/system.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/check.h"

namespace troupe {
namespace {

// The order of actors that become ready at the same instant is drawn by random delays up to this.
constexpr Duration kMaxSchedulingDelay = std::chrono::microseconds(20);
// 2026-01-01. Wall time is for records only.
constexpr int64_t kWallStartSeconds = 1'767'225'600;

}  // namespace

struct SimulatedSystem::Cell {
  Address self;
  Address owner;
  uint32_t node = 0;
  std::string name;
  std::unique_ptr<Actor> actor;
  Mailbox mailbox;
  std::deque<Envelope> taken;  // moved out of the mailbox, handled one by one
  std::vector<Envelope> batch;
  std::set<Address> children;
  struct Timer {
    MonotonicTime due;  // virtual
    AnyMessage message;
  };
  std::map<uint64_t, Timer> timers;
  uint64_t next_timer = 1;
  uint64_t random_key = 0;
  uint64_t random_index = 0;
  bool scheduled = false;
  bool running = false;
  bool ending = false;
  bool dead = false;  // its node crashed: none of its actions takes effect
  Status cause;
};

struct SimulatedSystem::Node {
  NodeId id;
  std::string name;
  NodeBoot boot;
  bool up = false;
  uint64_t boots = 0;
  MemoryStore disk;
  std::unique_ptr<NodeStore> store;
  std::optional<WriteCrash> crash_at_write;
  std::string crash_at_prefix;
  Duration clock_origin{};
  double clock_rate = 1;
  Duration wall_shift{};
};

// The store as seen by a process of the node; unusable after that process has died.
class SimulatedSystem::NodeStore final : public Store {
 public:
  NodeStore(SimulatedSystem& system, Node& node)
      : system_(system), node_(node), boot_(node.boots) {}

  StatusOr<std::string> Get(std::string_view key) const override {
    TROUPE_RETURN_IF_ERROR(Alive());
    return node_.disk.Get(key);
  }
  Status Scan(std::string_view begin, std::string_view end,
              const std::function<bool(std::string_view, std::string_view)>& visit) const override {
    TROUPE_RETURN_IF_ERROR(Alive());
    return node_.disk.Scan(begin, end, visit);
  }
  Status Write(const WriteBatch& batch, Durability durability) override {
    TROUPE_RETURN_IF_ERROR(Alive());
    std::optional<WriteCrash> crash;
    if (node_.crash_at_write && Touches(batch, node_.crash_at_prefix)) {
      crash = std::exchange(node_.crash_at_write, std::nullopt);
    }
    system_.trace_.Record(system_.now_, "write", node_.id.value, crash ? "and crash" : "store",
                          batch.changes().size());
    if (crash == WriteCrash::kBefore) {
      system_.Crash(node_.id, CrashKind::kProcess);
      return Alive();
    }
    TROUPE_RETURN_IF_ERROR(node_.disk.Write(batch, durability));
    if (system_.on_write_) system_.on_write_(node_.id, batch);
    if (crash == WriteCrash::kDurable) {
      system_.Crash(node_.id, CrashKind::kProcess);
      return Alive();
    }
    return OkStatus();
  }

 private:
  static bool Touches(const WriteBatch& batch, const std::string& prefix) {
    return std::any_of(
        batch.changes().begin(), batch.changes().end(),
        [&](const WriteBatch::Change& change) { return change.key.starts_with(prefix); });
  }
  Status Alive() const {
    return node_.up && node_.boots == boot_ ? OkStatus()
                                            : Unavailable("{} has crashed", node_.name);
  }

  SimulatedSystem& system_;
  Node& node_;
  const uint64_t boot_;
};

class SimulatedSystem::Activation final : public Context {
 public:
  Activation(SimulatedSystem& system, Cell& cell)
      : system_(system), cell_(cell), node_(*system.nodes_[cell.node]) {}

  Address self() const override { return cell_.self; }
  Address owner() const override { return cell_.owner; }
  std::string_view name() const override { return cell_.name; }
  MonotonicTime Now() const override { return system_.NodeTime(node_); }
  int64_t WallNanoseconds() const override { return system_.WallTime(node_); }
  uint64_t RandomBits() override { return UniformBits(cell_.random_key, cell_.random_index++); }

  Status Send(Address to, AnyMessage message) override {
    if (cell_.dead) return Unavailable("{} has crashed", node_.name);
    const auto receiver = system_.Find(to);
    TROUPE_CHECK(receiver == nullptr || receiver->node == cell_.node,
                 "{} sends {} to an actor of another node, which needs a stream", cell_.name,
                 message.name());
    return system_.Send(to, std::move(message));
  }

  Status SendAdmitted(Address to, AnyMessage message) override {
    if (cell_.dead) return Unavailable("{} has crashed", node_.name);
    const auto receiver = system_.Find(to);
    if (receiver == nullptr) return NotFound("actor {} has ended", to.value);
    TROUPE_CHECK(receiver->node == cell_.node, "{} sends {} to an actor of another node",
                 cell_.name, message.name());
    receiver->mailbox.PushAdmitted(std::move(message));
    system_.MakeReady(receiver);
    return OkStatus();
  }

  size_t waiting() const override { return cell_.mailbox.messages(); }

  TimerId SetTimer(Duration delay, AnyMessage message) override {
    const TimerId id{cell_.next_timer++};
    if (cell_.dead) return id;
    // Converts from the node's clock rate; rounded up, so that the node's Now() at expiry is never
    // before the requested time.
    const Duration wait =
        delay > Duration(0)
            ? Duration(static_cast<int64_t>(static_cast<double>(delay.count()) / node_.clock_rate) +
                       1000)
            : Duration(0);
    cell_.timers.emplace(id.value, Cell::Timer{system_.now_ + wait, std::move(message)});
    system_.Schedule(wait, [&system = system_, address = cell_.self, id] {
      const auto cell = system.Find(address);
      if (cell == nullptr || !cell->timers.contains(id.value)) return;
      system.Notify(address, TimerNotice{id});
    });
    return id;
  }

  void CancelTimer(TimerId timer) override { cell_.timers.erase(timer.value); }

  StatusOr<Address> Spawn(std::string name, std::unique_ptr<Actor> actor,
                          SpawnOptions options) override {
    if (cell_.dead) return Unavailable("{} has crashed", node_.name);
    TROUPE_ASSIGN_OR_RETURN(
        const Address child,
        system_.SpawnOwned(node_.id, std::move(name), std::move(actor), options, cell_.self));
    cell_.children.insert(child);
    return child;
  }

  Status StopChild(Address child, Status cause) override {
    if (!cell_.children.contains(child)) {
      return NotFound("actor {} is not a live child of {}", child.value, cell_.name);
    }
    system_.Notify(child, StopNotice{std::move(cause)});
    return OkStatus();
  }

  void Stop(Status cause) override {
    if (cell_.ending) return;
    cell_.ending = true;
    cell_.cause = std::move(cause);
  }

 private:
  SimulatedSystem& system_;
  Cell& cell_;
  const Node& node_;
};

SimulatedSystem::SimulatedSystem(SimulationOptions options)
    : options_(options),
      random_(options.seed, "simulation"),
      trace_(options.kept_events),
      network_(std::make_unique<SimulatedNetwork>(*this, options.network)) {}

SimulatedSystem::~SimulatedSystem() = default;

void SimulatedSystem::Schedule(Duration delay, std::function<void()> what) {
  due_.push_back({now_ + std::max(delay, Duration(0)), next_sequence_++, std::move(what)});
  std::push_heap(due_.begin(), due_.end(), Later());
}

bool SimulatedSystem::RunNext() {
  if (due_.empty()) return false;
  std::pop_heap(due_.begin(), due_.end(), Later());
  const Due next = std::move(due_.back());
  due_.pop_back();
  now_ = next.time;
  next.what();
  return true;
}

bool SimulatedSystem::RunFor(Duration time, uint64_t max_events) {
  const MonotonicTime until = now_ + time;
  const uint64_t last =
      max_events > UINT64_MAX - trace_.events() ? UINT64_MAX : trace_.events() + max_events;
  while (!due_.empty() && due_.front().time <= until) {
    if (trace_.events() >= last) return false;
    RunNext();
  }
  now_ = until;
  return true;
}

NodeId SimulatedSystem::AddNode(std::string name, NodeBoot boot) {
  auto node = std::make_unique<Node>();
  node->id = {static_cast<uint32_t>(nodes_.size())};
  node->name = std::move(name);
  node->boot = std::move(boot);
  nodes_.push_back(std::move(node));
  return nodes_.back()->id;
}

bool SimulatedSystem::IsUp(NodeId node) const { return nodes_[node.value]->up; }
const std::string& SimulatedSystem::NodeName(NodeId node) const { return nodes_[node.value]->name; }
uint64_t SimulatedSystem::Boots(NodeId node) const { return nodes_[node.value]->boots; }
MemoryStore& SimulatedSystem::Disk(NodeId node) { return nodes_[node.value]->disk; }

MonotonicTime SimulatedSystem::NodeTime(const Node& node) const {
  const double run = static_cast<double>(now_.time_since_epoch().count()) * node.clock_rate;
  return MonotonicTime(node.clock_origin + Duration(static_cast<int64_t>(run)));
}

int64_t SimulatedSystem::WallTime(const Node& node) const {
  return kWallStartSeconds * 1'000'000'000 + now_.time_since_epoch().count() +
         node.wall_shift.count();
}

void SimulatedSystem::ShiftWallClock(NodeId node, Duration shift) {
  nodes_[node.value]->wall_shift += shift;
}

void SimulatedSystem::Start(NodeId id) {
  Node& node = *nodes_[id.value];
  if (node.up) return;
  node.up = true;
  ++node.boots;
  node.crash_at_write.reset();
  node.clock_origin = random_.Between(std::chrono::seconds(1), std::chrono::hours(1000));
  node.clock_rate = 1 + (static_cast<double>(random_.Below(2001)) - 1000) * 1e-6;
  node.store = std::make_unique<NodeStore>(*this, node);
  trace_.Record(now_, "start", id.value, "node", node.boots);

  class Boot final : public NodeContext {
   public:
    Boot(SimulatedSystem& system, Node& node) : system_(system), node_(node) {}
    NodeId node() const override { return node_.id; }
    uint64_t boots() const override { return node_.boots; }
    MonotonicTime Now() const override { return system_.NodeTime(node_); }
    int64_t WallNanoseconds() const override { return system_.WallTime(node_); }
    Store& store() override { return *node_.store; }
    Address Spawn(std::string name, std::unique_ptr<Actor> actor, SpawnOptions options) override {
      const auto address =
          system_.SpawnOwned(node_.id, std::move(name), std::move(actor), options, Address{});
      TROUPE_CHECK_OK(address.status());
      return *address;
    }

   private:
    SimulatedSystem& system_;
    Node& node_;
  };
  Boot boot(*this, node);
  node.boot(boot);
}

void SimulatedSystem::Crash(NodeId id, CrashKind kind) {
  Node& node = *nodes_[id.value];
  if (!node.up) return;
  node.up = false;
  trace_.Record(now_, "crash", id.value, kind == CrashKind::kHost ? "host" : "process");
  std::erase_if(cells_, [&](const auto& entry) {
    if (entry.second->node != id.value) return false;
    entry.second->dead = true;
    return true;
  });
  network_->NodeCrashed(id, kind);
  node.disk.Crash(random_.Bits());
  if (on_crash_) on_crash_(id, kind);
}

void SimulatedSystem::CrashAtNextWrite(NodeId id, WriteCrash where, std::string key_prefix) {
  Node& node = *nodes_[id.value];
  if (!node.up) return;
  node.crash_at_write = where;
  node.crash_at_prefix = std::move(key_prefix);
}

void SimulatedSystem::CancelCrashAtWrite(NodeId node) {
  nodes_[node.value]->crash_at_write.reset();
}

StatusOr<Address> SimulatedSystem::Spawn(NodeId node, std::string name,
                                         std::unique_ptr<Actor> actor, SpawnOptions options) {
  return SpawnOwned(node, std::move(name), std::move(actor), options, Address{});
}

StatusOr<Address> SimulatedSystem::SpawnOwned(NodeId node, std::string name,
                                              std::unique_ptr<Actor> actor, SpawnOptions options,
                                              Address owner) {
  TROUPE_CHECK(actor != nullptr);
  if (!nodes_[node.value]->up) {
    return Unavailable("cannot spawn {}: {} is down", name, nodes_[node.value]->name);
  }
  auto cell = std::make_shared<Cell>();
  cell->self = {next_address_++};
  cell->owner = owner;
  cell->node = node.value;
  cell->random_key = RandomKey(options_.seed, name) ^ cell->self.value;
  cell->name = std::move(name);
  cell->actor = std::move(actor);
  cell->mailbox = Mailbox(options.mailbox_capacity);
  cell->mailbox.PushNotice(StartNotice{});
  cells_.emplace(cell->self.value, cell);
  MakeReady(cell);
  return cell->self;
}

std::shared_ptr<SimulatedSystem::Cell> SimulatedSystem::Find(Address address) const {
  const auto found = cells_.find(address.value);
  return found == cells_.end() ? nullptr : found->second;
}

Status SimulatedSystem::Send(Address to, AnyMessage message) {
  const auto cell = Find(to);
  if (cell == nullptr) return NotFound("actor {} has ended", to.value);
  TROUPE_RETURN_IF_ERROR(cell->mailbox.Push(std::move(message)));
  MakeReady(cell);
  return OkStatus();
}

Status SimulatedSystem::Deliver(Address to, AnyMessage message) {
  const auto cell = Find(to);
  if (cell == nullptr) return NotFound("actor {} has ended", to.value);
  if (cell->scheduled || cell->running) return cell->mailbox.Push(std::move(message));
  TROUPE_RETURN_IF_ERROR(cell->mailbox.Push(std::move(message)));
  cell->scheduled = true;
  RunCell(cell);
  return OkStatus();
}

void SimulatedSystem::Notify(Address to, Envelope notice) {
  const auto cell = Find(to);
  if (cell == nullptr) return;
  cell->mailbox.PushNotice(std::move(notice));
  MakeReady(cell);
}

void SimulatedSystem::MakeReady(const std::shared_ptr<Cell>& cell) {
  if (cell->scheduled) return;
  cell->scheduled = true;
  Schedule(random_.Between(Duration(0), kMaxSchedulingDelay), [this, cell] { RunCell(cell); });
}

void SimulatedSystem::RunCell(const std::shared_ptr<Cell>& cell) {
  cell->scheduled = false;
  if (cell->dead) return;
  if (cell->taken.empty()) {
    cell->mailbox.TakeAll(cell->batch);
    for (Envelope& envelope : cell->batch) cell->taken.push_back(std::move(envelope));
    cell->batch.clear();
  }
  if (cell->taken.empty()) return;
  Envelope envelope = std::move(cell->taken.front());
  cell->taken.pop_front();
  cell->running = true;
  HandleOne(*cell, std::move(envelope));
  if (cell->taken.empty() && !cell->dead && !cell->ending) {
    Activation context(*this, *cell);
    if (Status status = cell->actor->HandleBatchEnd(context); !status.ok()) {
      context.Stop(std::move(status));
    }
  }
  cell->running = false;
  if (cell->dead) return;
  if (cell->ending && cell->actor != nullptr) BeginEnd(*cell);
  if (cell->ending && cell->children.empty()) {
    Release(*cell);
    return;
  }
  if (!cell->taken.empty() || !cell->mailbox.empty()) MakeReady(cell);
}

void SimulatedSystem::HandleOne(Cell& cell, Envelope envelope) {
  Activation context(*this, cell);
  Status status;
  if (auto* end = std::get_if<EndNotice>(&envelope)) {
    trace_.Record(now_, "end", cell.self.value, "child", end->child.value);
    cell.children.erase(end->child);
    if (!cell.ending) status = cell.actor->HandleEnd(end->child, end->cause, context);
  } else if (cell.ending) {
    return;
  } else if (auto* message = std::get_if<AnyMessage>(&envelope)) {
    trace_.Record(now_, "message", cell.self.value, message->name());
    status = cell.actor->Handle(std::move(*message), context);
  } else if (auto* due = std::get_if<TimerNotice>(&envelope)) {
    const auto timer = cell.timers.find(due->timer.value);
    if (timer == cell.timers.end()) return;
    AnyMessage timed = std::move(timer->second.message);
    cell.timers.erase(timer);
    trace_.Record(now_, "timer", cell.self.value, timed.name());
    status = cell.actor->Handle(std::move(timed), context);
  } else if (auto* stop = std::get_if<StopNotice>(&envelope)) {
    trace_.Record(now_, "stop", cell.self.value, "actor");
    context.Stop(std::move(stop->cause));
  } else {
    trace_.Record(now_, "spawn", cell.self.value, "actor");
    status = cell.actor->Start(context);
  }
  if (!status.ok()) context.Stop(std::move(status));
}

void SimulatedSystem::BeginEnd(Cell& cell) {
  cell.actor.reset();
  cell.timers.clear();
  for (const Address child : cell.children) {
    Notify(child, StopNotice{Cancelled("its owner {} ended", cell.name)});
  }
}

void SimulatedSystem::Release(Cell& cell) {
  const std::shared_ptr<Cell> kept = Find(cell.self);
  cells_.erase(cell.self.value);
  if (cell.owner) {
    Notify(cell.owner, EndNotice{cell.self, std::move(cell.cause)});
  } else {
    trace_.Record(now_, "end", cell.self.value, "root");
    if (on_root_end_) on_root_end_({cell.node}, cell.name, cell.cause);
  }
}

}  // namespace troupe
