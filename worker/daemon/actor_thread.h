// One actor with a thread of its own, because its handlers block, on files for example. The other
// actors of the daemon share one thread and never wait for it.
#ifndef TROUPE_WORKER_DAEMON_ACTOR_THREAD_H_
#define TROUPE_WORKER_DAEMON_ACTOR_THREAD_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "actor/system.h"
#include "base/check.h"

namespace troupe {

// Thread-safe.
class ActorThread {
 public:
  // `on_end` is called if the actor ends before this object does.
  ActorThread(std::string name, std::unique_ptr<Actor> actor, size_t mailbox_capacity,
              RootEnded on_end)
      : system_(clock_, {.threads = 1, .max_actors = 1, .on_root_end = std::move(on_end)}) {
    const StatusOr<Address> address =
        system_.Spawn(std::move(name), std::move(actor), {.mailbox_capacity = mailbox_capacity});
    TROUPE_CHECK_OK(address.status());
    address_ = *address;
  }

  // Like ActorSystem::Send.
  Status Send(AnyMessage message) { return system_.Send(address_, std::move(message)); }

 private:
  SystemClock clock_;
  ActorSystem system_;
  Address address_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_DAEMON_ACTOR_THREAD_H_
