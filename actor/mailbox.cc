#include "actor/mailbox.h"

#include <utility>

#include "base/check.h"

namespace troupe {

Status Mailbox::Push(AnyMessage message) {
  if (messages_ >= capacity_) {
    return ResourceExhausted("mailbox is full ({} messages wait, capacity {}); {} was not accepted",
                             messages_, capacity_, message.name());
  }
  ++messages_;
  waiting_.emplace_back(std::move(message));
  return OkStatus();
}

void Mailbox::PushAdmitted(AnyMessage message) {
  ++messages_;
  waiting_.emplace_back(std::move(message));
}

void Mailbox::PushNotice(Envelope notice) {
  TROUPE_CHECK(!std::holds_alternative<AnyMessage>(notice));
  waiting_.push_back(std::move(notice));
}

void Mailbox::TakeAll(std::vector<Envelope>& taken) {
  TROUPE_CHECK(taken.empty());
  messages_ = 0;
  taken.swap(waiting_);
}

}  // namespace troupe
