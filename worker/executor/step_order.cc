#include "worker/executor/step_order.h"

#include <algorithm>

#include "base/check.h"

namespace troupe {

StepOrder::Move StepOrder::Next() const {
  const bool all_completed = completed_ == submitted_;
  const bool acts = act_after_.contains(submitted_);
  const bool is_over = stops_ || submitted_ == last_step_;
  if (!all_completed) {
    const bool submits = !acts && !is_over && !drains_ && submitted_ < ticket_end_ &&
                         submitted_ - completed_ <= lag_steps_;
    return submits ? Move::kSubmit : Move::kComplete;
  }
  if (acts) return Move::kAct;
  if (is_over) return Move::kEnd;
  return submitted_ < ticket_end_ ? Move::kSubmit : Move::kAgree;
}

void StepOrder::Submitted(bool drains) {
  TROUPE_CHECK(Next() == Move::kSubmit, "step {} was submitted out of order", submitted_ + 1);
  ++submitted_;
  drains_ = drains;
}

void StepOrder::Completed(int64_t ticket_end) {
  TROUPE_CHECK(Next() == Move::kComplete, "step {} was completed out of order", completed_ + 1);
  ++completed_;
  // An older control word may have an end before the one already known; ends never move back.
  ticket_end_ = std::max(ticket_end_, ticket_end);
  if (completed_ == submitted_) drains_ = false;
}

void StepOrder::Acted(bool stops) {
  TROUPE_CHECK(Next() == Move::kAct, "no step is due after step {}", submitted_);
  act_after_.erase(submitted_);
  stops_ = stops_ || stops;
}

void StepOrder::ActAfter(int64_t step) {
  TROUPE_CHECK(step >= submitted_, "step {} is already submitted, too late to act after step {}",
               submitted_, step);
  act_after_.insert(step);
}

}  // namespace troupe
