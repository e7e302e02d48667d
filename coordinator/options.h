// What a coordinator's machine is built with.
#ifndef TROUPE_COORDINATOR_OPTIONS_H_
#define TROUPE_COORDINATOR_OPTIONS_H_

#include <string>

#include "base/keep_ended.h"
#include "base/time_limits.h"
#include "coordinator/planner.h"

namespace troupe {

// Known bugs, put back by the simulation to show that it catches them. All off in the product.
struct KnownBugs {
  bool charge_lost_hosts = false;        // every failure spends the job's own budget
  bool choose_bad_hosts = false;         // whatever was laid to them
  bool forget_submitted_layout = false;  // the smaller one takes its place
  bool never_grow = false;               // a shrunk job stays so
  bool quarantine_on_one_word = false;   // the first host that finds a commit damaged decides
  // Messages of older group epochs are taken for the current one's.
  bool accept_stale_epochs = false;
  bool accept_unasked_answers = false;  // any worker may say that a commit is damaged or deleted
};

struct CoordinatorOptions {
  TimeLimits limits = MakeTimeLimits(3);
  // Of jobs that come without a checkpoint.folder, absolute; empty: those keep none.
  std::string checkpoint_folder;
  Planner planner;
  KeepEnded keep_ended;  // by default all
  KnownBugs bugs;
};

// Gives a spec that states no checkpoint.folder, not even "", the coordinator's.
void FillCheckpointFolder(const CoordinatorOptions& options, v1::JobSpec* spec);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_OPTIONS_H_
