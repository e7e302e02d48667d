// The context of one Step: time, options, fleet, and the effects that it fills.
#ifndef TROUPE_COORDINATOR_STATE_TURN_H_
#define TROUPE_COORDINATOR_STATE_TURN_H_

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "coordinator/state/event.h"
#include "coordinator/state/fleet.h"
#include "coordinator/state/options.h"

namespace troupe {

struct Turn {
  MonotonicTime now;
  int64_t wall_ns = 0;
  uint64_t leader_epoch = 0;
  const CoordinatorOptions& options;
  Fleet& fleet;
  Effects& effects;
  bool reschedule = false;  // devices or queue changed: the scheduler has to run again

  const TimeLimits& limits() const { return options.limits; }
};

// Queues `message` for the worker if it has a session, and drops it otherwise: whatever a worker
// must know is resent when it reconnects (ResendTo in coordinator/job/group.h).
void SendToWorker(const std::string& worker, v1::CoordinatorMessage message, Turn& turn);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_STATE_TURN_H_
