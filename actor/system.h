// Runs actors on a small fixed pool of threads.
//
// Thread-safe. The number of actors, each mailbox and the pool are bounded at the start; nothing
// grows with load. Handlers must not block for long: a pool of N threads has N of them at once.
#ifndef TROUPE_ACTOR_SYSTEM_H_
#define TROUPE_ACTOR_SYSTEM_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "actor/actor.h"
#include "actor/mailbox.h"
#include "base/clock.h"
#include "base/status.h"

namespace troupe {

struct ActorSystemOptions {
  int threads = 2;
  size_t max_actors = 4096;
  // Of the actors' random bits.
  uint64_t seed = 0;
  // Called on a pool thread; must not call back into the destructor. May be empty.
  RootEnded on_root_end;
};

class ActorSystem {
 public:
  // REQUIRES: threads >= 1, 1 <= max_actors <= 2^20; `clock` outlives the system.
  ActorSystem(const Clock& clock, ActorSystemOptions options);
  // Lets the handlers that run now finish, handles nothing more, destroys all actors.
  ~ActorSystem();

  ActorSystem(const ActorSystem&) = delete;
  ActorSystem& operator=(const ActorSystem&) = delete;

  // Makes a root actor. RESOURCE_EXHAUSTED when max_actors live.
  StatusOr<Address> Spawn(std::string name, std::unique_ptr<Actor> actor,
                          SpawnOptions options = {});

  // As Context::Send, from any thread.
  Status Send(Address to, AnyMessage message);

  // Asks the actor to end with `cause`. NOT_FOUND when it has ended.
  Status Stop(Address actor, Status cause);

 private:
  struct Cell;
  class Activation;

  StatusOr<Address> SpawnOwned(std::string name, std::unique_ptr<Actor> actor, SpawnOptions options,
                               Address owner);
  Status Notify(Address to, Envelope notice);
  // Null where `address` names no cell of this system.
  Cell* CellOf(Address address);
  void MakeReady(Cell* cell);

  void RunThread();
  // Fires the timers that are due. REQUIRES: `lock` holds mutex_; it is released meanwhile.
  void FireTimers(std::unique_lock<std::mutex>& lock);
  void RunCell(Cell& cell);
  // Destroys the actor and its timers and stops its children.
  void BeginEnd(Cell& cell);
  // Gives the cell back and tells the owner. REQUIRES: no children left.
  void Release(Cell& cell);

  const Clock& clock_;
  const ActorSystemOptions options_;
  const std::unique_ptr<Cell[]> cells_;

  // Guards what follows. Never held together with a cell's mutex.
  std::mutex mutex_;
  std::condition_variable work_;
  bool stopping_ = false;
  int idle_threads_ = 0;
  std::deque<Cell*> ready_;
  std::vector<uint32_t> free_;
  std::map<std::pair<MonotonicTime, TimerId>, Address> timers_;
  uint64_t next_timer_ = 1;

  std::vector<std::thread> threads_;
};

}  // namespace troupe

#endif  // TROUPE_ACTOR_SYSTEM_H_
