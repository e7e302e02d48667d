#include "worker/daemon/event_sender.h"

#include "base/log.h"

namespace troupe {

Status EventSender::Offer(Context& context) {
  if (timer_set_ || waiting_->empty()) {
    if (waiting_->size() <= kKeptMax) return OkStatus();
    return ResourceExhausted("{}: {} events wait for the session", context.name(),
                             waiting_->size());
  }
  const Status sent = send_(AnyMessage(SessionEvents{waiting_}));
  if (sent.code() == StatusCode::kResourceExhausted) {
    LogWarning("worker", "{}: {} events wait, because the mailbox of the session is full",
               context.name(), waiting_->size());
    timer_set_ = true;
    context.SetTimer(kOfferInterval, AnyMessage(OfferAgain{}));
    return OkStatus();
  }
  // NOT_FOUND means that the daemon ends, and nobody waits for the events.
  waiting_ = std::make_shared<std::vector<SessionEvent>>();
  return OkStatus();
}

}  // namespace troupe
