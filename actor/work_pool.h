// Runs functions that block, such as file operations and long computations, on a stated number of
// worker actors, so that other actors never wait for one.
//
// One actor accepts the work and owns the workers. At most `workers` functions run at a time, and
// at most `max_waiting` wait. A function that finds no room, or whose turn comes too late, is
// called at once with the reason, so that it can answer its caller: no work is lost silently.
#ifndef TROUPE_ACTOR_WORK_POOL_H_
#define TROUPE_ACTOR_WORK_POOL_H_

#include <cstddef>
#include <functional>
#include <string>
#include <utility>

#include "actor/actor.h"
#include "actor/system.h"
#include "base/clock.h"
#include "base/status.h"

namespace troupe {

struct WorkPoolOptions {
  std::string name;  // a plural for actors and messages, such as "plans"
  int workers = 1;
  size_t max_waiting = 64;
  Duration limit = Duration::max();  // the longest time that work may wait before it starts
};

// A handle to the pool's actor; may be copied. Thread-safe.
class WorkPool {
 public:
  // `turn` is OK when the work may be done, on a thread of the actor system where it may block.
  // Otherwise it is the reason (RESOURCE_EXHAUSTED, with name and limit: too much work waits;
  // DEADLINE_EXCEEDED: it waited longer than `limit`; NOT_FOUND: the pool has ended), and the
  // function must not block.
  using Work = std::function<void(const Status& turn)>;

  // Spawns the pool as a root actor. The system needs a thread for each worker, next to those for
  // its other actors; it outlives the handle.
  static StatusOr<WorkPool> Spawn(ActorSystem& system, const WorkPoolOptions& options);

  // Calls `work` once, on any thread. Work that waits when the pool's actor ends is dropped.
  void Run(Work work) const;

  Address address() const { return address_; }

 private:
  WorkPool(ActorSystem& system, Address address, const WorkPoolOptions& options)
      : system_(&system),
        address_(address),
        name_(options.name),
        max_waiting_(options.max_waiting) {}

  ActorSystem* system_;
  Address address_;
  std::string name_;
  size_t max_waiting_;
};

}  // namespace troupe

#endif  // TROUPE_ACTOR_WORK_POOL_H_
