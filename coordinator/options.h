// What a coordinator's machine is built with.
#ifndef TROUPE_COORDINATOR_OPTIONS_H_
#define TROUPE_COORDINATOR_OPTIONS_H_

#include <string>

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
  // Of jobs that come without a checkpoint.folder, absolute; empty: those keep none.
  std::string checkpoint_folder;
  Planner planner;
  KnownBugs bugs;
};

// Gives a spec that states no checkpoint.folder, not even "", the coordinator's.
void FillCheckpointFolder(const CoordinatorOptions& options, v1::JobSpec* spec);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_OPTIONS_H_
