#include "tests/simulation/burn_in_model.h"

#include <utility>

#include "worker/daemon/burn_in_actor.h"

namespace troupe::simulation {
namespace {

struct BurntIn {
  static constexpr std::string_view kMessageName = "burn_in.burnt_in";
};

}  // namespace

Status BurnInModel::Start(Context& context) {
  events_ = MakeEventSender(world_, context);
  return OkStatus();
}

Status BurnInModel::Handle(AnyMessage message, Context& context) {
  if (auto* want = message.As<WantBurnIn>()) {
    context.CancelTimer(end_);
    if (!want->request) return OkStatus();
    request_ = *std::move(want->request);
    end_ = context.SetTimer(FromSeconds(request_.seconds()), AnyMessage(BurntIn{}));
    return OkStatus();
  }
  if (message.As<BurntIn>()) {
    session::BurnInEnded ended;
    ended.done.set_request(request_.request());
    const bool writes =
        request_.folders().empty() || world_.BlockedFor(worker_) == Duration::zero();
    ended.done.set_sound(world_.FaultOf(worker_) == HostFault::kNone && writes);
    return events_->Report(std::move(ended), context);
  }
  if (message.As<OfferAgain>()) return events_->OfferLater(context);
  return Internal("the burn-in received {}", message.name());
}

}  // namespace troupe::simulation
