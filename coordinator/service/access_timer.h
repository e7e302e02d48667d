// Ends the streams of callers whose certificates or tokens have expired, once a second.
//
// An actor that never blocks. Overload: it has no other messages than its own timer's.
#ifndef TROUPE_COORDINATOR_SERVICE_ACCESS_TIMER_H_
#define TROUPE_COORDINATOR_SERVICE_ACCESS_TIMER_H_

#include "actor/actor.h"
#include "coordinator/access/access_control.h"

namespace troupe {

class AccessTimer final : public Actor {
 public:
  // `access` outlives the actor.
  explicit AccessTimer(AccessControl& access) : access_(access) {}

  Status Start(Context& context) override;
  Status Handle(AnyMessage message, Context& context) override;

 private:
  AccessControl& access_;
};

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_SERVICE_ACCESS_TIMER_H_
