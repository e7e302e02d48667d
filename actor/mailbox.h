// The queue of one actor, oldest entry first. `capacity` bounds messages from other actors. Notices
// of the runtime (a timer is due, a child ended, stop) always fit, since each answers something the
// actor itself began.
//
// The reader takes all waiting entries at once, so at most twice `capacity` messages exist for one
// actor.
//
// Not thread-safe: the actor system guards it.
#ifndef TROUPE_ACTOR_MAILBOX_H_
#define TROUPE_ACTOR_MAILBOX_H_

#include <cstddef>
#include <variant>
#include <vector>

#include "actor/actor.h"
#include "actor/message.h"
#include "base/status.h"

namespace troupe {

struct StartNotice {};
struct TimerNotice {
  TimerId timer;
};
struct EndNotice {
  Address child;
  Status cause;
};
struct StopNotice {
  Status cause;
};

using Envelope = std::variant<AnyMessage, StartNotice, TimerNotice, EndNotice, StopNotice>;

class Mailbox {
 public:
  explicit Mailbox(size_t capacity = 0) : capacity_(capacity) {}

  bool empty() const { return waiting_.empty(); }
  // The number of waiting messages, without notices.
  size_t messages() const { return messages_; }

  // RESOURCE_EXHAUSTED when `capacity` messages are waiting already.
  Status Push(AnyMessage message);
  // Adds the message even if the mailbox is full (Context::SendAdmitted).
  void PushAdmitted(AnyMessage message);
  void PushNotice(Envelope notice);

  // Moves all waiting entries into `taken` and keeps the memory of both vectors. REQUIRES: `taken`
  // is empty.
  void TakeAll(std::vector<Envelope>& taken);

 private:
  size_t capacity_;
  size_t messages_ = 0;
  std::vector<Envelope> waiting_;
};

}  // namespace troupe

#endif  // TROUPE_ACTOR_MAILBOX_H_
