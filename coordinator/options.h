// What a coordinator's machine is built with.
#ifndef TROUPE_COORDINATOR_OPTIONS_H_
#define TROUPE_COORDINATOR_OPTIONS_H_

#include "base/time_limits.h"
#include "coordinator/planner.h"

namespace troupe {

// Known bugs, put back by the simulation to show that it catches them. All off in the product.
struct KnownBugs {
  bool accept_stale_epochs =
      false;  // messages of older group epochs are taken for the current one's
};

struct CoordinatorOptions {
  TimeLimits limits = MakeTimeLimits(3);
  Planner planner;
  KnownBugs bugs;
};

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_OPTIONS_H_
