#include "actor/system.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/check.h"
#include "base/random.h"

namespace troupe {

// A slot that holds one actor at a time. `generation` distinguishes successive actors of a slot: an
// address is (generation, index).
struct ActorSystem::Cell {
  uint32_t index = 0;

  std::mutex mutex;  // guards the next four members
  uint32_t generation = 1;
  bool live = false;
  bool scheduled = false;  // in ready_ or running: at most one thread runs a cell
  Mailbox mailbox;

  // Spawn writes the following members before the first activation; after that only the thread that
  // runs the cell accesses them.
  Address self;
  Address owner;
  std::string name;
  std::unique_ptr<Actor> actor;
  std::unordered_set<Address> children;
  struct Timer {
    MonotonicTime due;
    AnyMessage message;
  };
  std::unordered_map<uint64_t, Timer> timers;
  uint64_t random_key = 0;
  uint64_t random_index = 0;
  bool ending = false;
  Status cause;
  std::vector<Envelope> batch;
};

namespace {

constexpr int kIndexBits = 20;

Address MakeAddress(uint32_t generation, uint32_t index) {
  return {(uint64_t{generation} << kIndexBits) | index};
}
uint32_t IndexOf(Address address) { return address.value & ((1u << kIndexBits) - 1); }
uint32_t GenerationOf(Address address) { return address.value >> kIndexBits; }

Status Ended(Address address) { return NotFound("actor {} has ended", address.value); }

}  // namespace

class ActorSystem::Activation final : public Context {
 public:
  Activation(ActorSystem& system, Cell& cell) : system_(system), cell_(cell) {}

  Address self() const override { return cell_.self; }
  Address owner() const override { return cell_.owner; }
  std::string_view name() const override { return cell_.name; }
  MonotonicTime Now() const override { return system_.clock_.Now(); }
  int64_t WallNanoseconds() const override { return system_.clock_.WallNanoseconds(); }
  uint64_t RandomBits() override { return UniformBits(cell_.random_key, cell_.random_index++); }

  Status Send(Address to, AnyMessage message) override {
    return system_.Send(to, std::move(message));
  }

  Status SendAdmitted(Address to, AnyMessage message) override {
    return system_.SendAdmitted(to, std::move(message));
  }

  size_t waiting() const override {
    std::lock_guard lock(cell_.mutex);
    return cell_.mailbox.messages();
  }

  TimerId SetTimer(Duration delay, AnyMessage message) override {
    const MonotonicTime due = Now() + std::max(delay, Duration(0));
    TimerId id;
    {
      std::lock_guard lock(system_.mutex_);
      id = {system_.next_timer_++};
      system_.timers_.emplace(std::pair(due, id), cell_.self);
      // An idle thread sleeps until the previously earliest timer; wake it for the new one.
      if (system_.idle_threads_ > 0 && system_.timers_.begin()->first.second == id) {
        system_.work_.notify_one();
      }
    }
    cell_.timers.emplace(id.value, Cell::Timer{due, std::move(message)});
    return id;
  }

  void CancelTimer(TimerId timer) override {
    const auto found = cell_.timers.find(timer.value);
    if (found == cell_.timers.end()) return;
    {
      std::lock_guard lock(system_.mutex_);
      system_.timers_.erase(std::pair(found->second.due, timer));
    }
    cell_.timers.erase(found);
  }

  StatusOr<Address> Spawn(std::string name, std::unique_ptr<Actor> actor,
                          SpawnOptions options) override {
    TROUPE_ASSIGN_OR_RETURN(
        const Address child,
        system_.SpawnOwned(std::move(name), std::move(actor), options, cell_.self));
    cell_.children.insert(child);
    return child;
  }

  Status StopChild(Address child, Status cause) override {
    if (!cell_.children.contains(child)) {
      return NotFound("actor {} is not a live child of {}", child.value, cell_.name);
    }
    return system_.Stop(child, std::move(cause));
  }

  void Stop(Status cause) override {
    if (cell_.ending) return;
    cell_.ending = true;
    cell_.cause = std::move(cause);
  }

 private:
  ActorSystem& system_;
  Cell& cell_;
};

ActorSystem::ActorSystem(const Clock& clock, ActorSystemOptions options)
    : clock_(clock), options_(std::move(options)), cells_(new Cell[options_.max_actors]) {
  TROUPE_CHECK(options_.threads >= 1);
  TROUPE_CHECK(options_.max_actors >= 1 && options_.max_actors <= (1u << kIndexBits));
  for (size_t i = options_.max_actors; i-- > 0;) {
    cells_[i].index = static_cast<uint32_t>(i);
    free_.push_back(static_cast<uint32_t>(i));
  }
  for (int i = 0; i < options_.threads; ++i) threads_.emplace_back([this] { RunThread(); });
}

ActorSystem::~ActorSystem() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  work_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

StatusOr<Address> ActorSystem::Spawn(std::string name, std::unique_ptr<Actor> actor,
                                     SpawnOptions options) {
  return SpawnOwned(std::move(name), std::move(actor), options, Address{});
}

StatusOr<Address> ActorSystem::SpawnOwned(std::string name, std::unique_ptr<Actor> actor,
                                          SpawnOptions options, Address owner) {
  TROUPE_CHECK(actor != nullptr);
  Cell* cell = nullptr;
  {
    std::lock_guard lock(mutex_);
    if (free_.empty()) {
      return ResourceExhausted("cannot spawn {}: {} actors are alive, and the limit is {}", name,
                               options_.max_actors, options_.max_actors);
    }
    cell = &cells_[free_.back()];
    free_.pop_back();
  }
  std::unique_lock lock(cell->mutex);
  const Address address = MakeAddress(cell->generation, cell->index);
  cell->self = address;
  cell->owner = owner;
  cell->random_key = RandomKey(options_.seed, name) ^ address.value;
  cell->random_index = 0;
  cell->name = std::move(name);
  cell->actor = std::move(actor);
  cell->ending = false;
  cell->cause = OkStatus();
  cell->mailbox = Mailbox(options.mailbox_capacity);
  cell->mailbox.PushNotice(StartNotice{});
  cell->live = true;
  cell->scheduled = true;
  lock.unlock();
  MakeReady(cell);
  return address;
}

ActorSystem::Cell* ActorSystem::CellOf(Address address) {
  const uint32_t index = IndexOf(address);
  return address && index < options_.max_actors ? &cells_[index] : nullptr;
}

template <typename PushTo>
Status ActorSystem::Post(Address to, const PushTo& push) {
  Cell* const cell = CellOf(to);
  if (cell == nullptr) return Ended(to);
  {
    std::lock_guard lock(cell->mutex);
    if (!cell->live || cell->generation != GenerationOf(to)) return Ended(to);
    TROUPE_RETURN_IF_ERROR(push(cell->mailbox));
    if (cell->scheduled) return OkStatus();
    cell->scheduled = true;
  }
  MakeReady(cell);
  return OkStatus();
}

Status ActorSystem::Send(Address to, AnyMessage message) {
  return Post(to, [&](Mailbox& mailbox) { return mailbox.Push(std::move(message)); });
}

Status ActorSystem::SendAdmitted(Address to, AnyMessage message) {
  return Post(to, [&](Mailbox& mailbox) {
    mailbox.PushAdmitted(std::move(message));
    return OkStatus();
  });
}

Status ActorSystem::Notify(Address to, Envelope notice) {
  return Post(to, [&](Mailbox& mailbox) {
    mailbox.PushNotice(std::move(notice));
    return OkStatus();
  });
}

Status ActorSystem::Stop(Address actor, Status cause) {
  return Notify(actor, StopNotice{std::move(cause)});
}

void ActorSystem::MakeReady(Cell* cell) {
  bool wake = false;
  {
    std::lock_guard lock(mutex_);
    ready_.push_back(cell);
    wake = idle_threads_ > 0;
  }
  if (wake) work_.notify_one();
}

void ActorSystem::RunThread() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    FireTimers(lock);
    if (stopping_) break;
    if (!ready_.empty()) {
      Cell* const cell = ready_.front();
      ready_.pop_front();
      lock.unlock();
      RunCell(*cell);
      lock.lock();
      continue;
    }
    ++idle_threads_;
    if (timers_.empty()) {
      work_.wait(lock);
    } else {
      work_.wait_for(lock, timers_.begin()->first.first - clock_.Now());
    }
    --idle_threads_;
  }
}

void ActorSystem::FireTimers(std::unique_lock<std::mutex>& lock) {
  while (!timers_.empty() && timers_.begin()->first.first <= clock_.Now()) {
    const auto [key, address] = *timers_.begin();
    timers_.erase(timers_.begin());
    lock.unlock();
    // NOT_FOUND means that the actor, and its timers with it, has ended meanwhile.
    Notify(address, TimerNotice{key.second}).IgnoreError();
    lock.lock();
  }
}

void ActorSystem::RunCell(Cell& cell) {
  {
    std::lock_guard lock(cell.mutex);
    cell.mailbox.TakeAll(cell.batch);
  }
  Activation context(*this, cell);
  for (Envelope& envelope : cell.batch) {
    Status status;
    if (auto* end = std::get_if<EndNotice>(&envelope)) {
      // Handled even while ending: this actor's end is reported after its children's.
      cell.children.erase(end->child);
      if (!cell.ending) status = cell.actor->HandleEnd(end->child, end->cause, context);
    } else if (cell.ending) {
      continue;
    } else if (auto* message = std::get_if<AnyMessage>(&envelope)) {
      status = cell.actor->Handle(std::move(*message), context);
    } else if (auto* due = std::get_if<TimerNotice>(&envelope)) {
      // The timer may have been cancelled after it fired.
      const auto timer = cell.timers.find(due->timer.value);
      if (timer == cell.timers.end()) continue;
      AnyMessage timed = std::move(timer->second.message);
      cell.timers.erase(timer);
      status = cell.actor->Handle(std::move(timed), context);
    } else if (auto* stop = std::get_if<StopNotice>(&envelope)) {
      context.Stop(std::move(stop->cause));
    } else {
      status = cell.actor->Start(context);
    }
    if (!status.ok()) context.Stop(std::move(status));
    if (cell.ending && cell.actor != nullptr) BeginEnd(cell);
  }
  cell.batch.clear();
  if (!cell.ending) {
    if (Status status = cell.actor->HandleBatchEnd(context); !status.ok()) {
      context.Stop(std::move(status));
    }
    if (cell.ending) BeginEnd(cell);
  }
  if (cell.ending && cell.children.empty()) {
    Release(cell);
    return;
  }
  {
    std::lock_guard lock(cell.mutex);
    if (cell.mailbox.empty()) {
      cell.scheduled = false;
      return;
    }
  }
  // This thread takes the next ready cell itself: it need not wake another one for this.
  std::lock_guard lock(mutex_);
  ready_.push_back(&cell);
}

void ActorSystem::BeginEnd(Cell& cell) {
  cell.actor.reset();
  {
    std::lock_guard lock(mutex_);
    for (const auto& [id, timer] : cell.timers) timers_.erase(std::pair(timer.due, TimerId{id}));
  }
  cell.timers.clear();
  for (const Address child : cell.children) {
    // NOT_FOUND means that the child's end is already in its owner's mailbox.
    Stop(child, Cancelled("its owner {} ended", cell.name)).IgnoreError();
  }
}

void ActorSystem::Release(Cell& cell) {
  std::vector<Envelope> dropped;
  const Address self = cell.self;
  const Address owner = cell.owner;
  const std::string name = std::move(cell.name);
  Status cause = std::move(cell.cause);
  {
    std::lock_guard lock(cell.mutex);
    cell.live = false;
    cell.scheduled = false;
    ++cell.generation;
    cell.mailbox.TakeAll(dropped);
  }
  dropped.clear();
  {
    std::lock_guard lock(mutex_);
    free_.push_back(cell.index);
  }
  if (owner) {
    // NOT_FOUND cannot happen: an owner ends after its children.
    TROUPE_CHECK_OK(Notify(owner, EndNotice{self, std::move(cause)}));
  } else if (options_.on_root_end) {
    options_.on_root_end(name, cause);
  }
}

}  // namespace troupe
