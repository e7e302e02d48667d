// Runs actors on a small fixed pool of threads.
//
// Thread-safe. The numbers of actors, mailbox entries and threads are bounded at the start and do
// not grow with load. Handlers must not block for long: N threads run at most N handlers at once.
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
  // Seeds the actors' random bits.
  uint64_t seed = 0;
  // Called on a pool thread; must not destroy the system. May be empty.
  RootEnded on_root_end;
};

class ActorSystem {
 public:
  // REQUIRES: threads >= 1, 1 <= max_actors <= 2^20; `clock` outlives the system.
  ActorSystem(const Clock& clock, ActorSystemOptions options);
  // Lets running handlers finish, handles nothing more, and destroys all actors.
  ~ActorSystem();

  ActorSystem(const ActorSystem&) = delete;
  ActorSystem& operator=(const ActorSystem&) = delete;

  // Creates a root actor. RESOURCE_EXHAUSTED when max_actors actors are alive.
  StatusOr<Address> Spawn(std::string name, std::unique_ptr<Actor> actor,
                          SpawnOptions options = {});

  // Like Context::Send and Context::SendAdmitted, from any thread.
  Status Send(Address to, AnyMessage message);
  Status SendAdmitted(Address to, AnyMessage message);

  // Asks the actor to end with `cause`. NOT_FOUND when it has ended.
  Status Stop(Address actor, Status cause);

 private:
  struct Cell;
  class Activation;

  StatusOr<Address> SpawnOwned(std::string name, std::unique_ptr<Actor> actor, SpawnOptions options,
                               Address owner);
  // Calls `push(mailbox)` on the mailbox of `to` and makes the actor ready, unless `push` fails.
  template <typename PushTo>
  Status Post(Address to, const PushTo& push);
  Status Notify(Address to, Envelope notice);
  // Null if `address` names no cell of this system.
  Cell* CellOf(Address address);
  void MakeReady(Cell* cell);

  void RunThread();
  // Fires the timers that are due. REQUIRES: `lock` holds mutex_; it is released while notices are
  // sent.
  void FireTimers(std::unique_lock<std::mutex>& lock);
  void RunCell(Cell& cell);
  // Destroys the actor and its timers and stops its children.
  void BeginEnd(Cell& cell);
  // Frees the cell and notifies the owner. REQUIRES: no children are left.
  void Release(Cell& cell);

  const Clock& clock_;
  const ActorSystemOptions options_;
  const std::unique_ptr<Cell[]> cells_;

  // Guards the following members. Never held together with a cell's mutex.
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
