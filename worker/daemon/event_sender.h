// The way in which the daemon's actors report events to the session actor. None is lost: events
// that its mailbox has no room for stay with the sender, which offers them again and meanwhile
// reads no further.
#ifndef TROUPE_WORKER_DAEMON_EVENT_SENDER_H_
#define TROUPE_WORKER_DAEMON_EVENT_SENDER_H_

#include <chrono>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "actor/actor.h"
#include "worker/session/event.h"

namespace troupe {

using SessionWhat = decltype(session::Event::what);

struct SessionEvent {
  SessionWhat what;
  // Released once the event has been handled: its source may then send more.
  std::shared_ptr<void> turn;
};

// Events in their order, for the session actor. The sender keeps its pointer until the message has
// been accepted, because a refused message is gone.
struct SessionEvents {
  static constexpr std::string_view kMessageName = "session.events";
  std::shared_ptr<std::vector<SessionEvent>> events;
};

// Reminds an actor to call EventSender::Offer.
struct OfferAgain {
  static constexpr std::string_view kMessageName = "session.offer_again";
};

// A part of the actor that sends; used in its handlers only.
class EventSender {
 public:
  // Limit of events that wait at one sender, far more than its sources have in flight.
  static constexpr size_t kKeptMax = 4096;
  static constexpr Duration kOfferInterval = std::chrono::milliseconds(10);

  // `send` passes a message to the session actor and returns RESOURCE_EXHAUSTED if its mailbox is
  // full.
  explicit EventSender(std::function<Status(AnyMessage)> send) : send_(std::move(send)) {}

  // Adds an event for the next Offer.
  void Add(SessionWhat what, std::shared_ptr<void> turn = nullptr) {
    waiting_->push_back({std::move(what), std::move(turn)});
  }
  // Sends what was added. If there is no room, the actor receives OfferAgain after kOfferInterval.
  // Returns RESOURCE_EXHAUSTED if more than kKeptMax events wait, which ends the actor.
  Status Offer(Context& context);
  Status Report(SessionWhat what, Context& context) {
    Add(std::move(what));
    return Offer(context);
  }
  // Handles OfferAgain.
  Status OfferLater(Context& context) {
    timer_set_ = false;
    return Offer(context);
  }

  // Whether every event has been accepted.
  bool done() const { return waiting_->empty(); }

 private:
  const std::function<Status(AnyMessage)> send_;
  std::shared_ptr<std::vector<SessionEvent>> waiting_ =
      std::make_shared<std::vector<SessionEvent>>();
  bool timer_set_ = false;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_DAEMON_EVENT_SENDER_H_
