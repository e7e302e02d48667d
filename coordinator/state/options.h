// Options of a coordinator's state machine.
#ifndef TROUPE_COORDINATOR_STATE_OPTIONS_H_
#define TROUPE_COORDINATOR_STATE_OPTIONS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "base/keep_ended.h"
#include "base/time_limits.h"
#include "coordinator/state/namespaces.h"
#include "coordinator/state/planner.h"

namespace troupe {

// Known bugs that the simulation switches on to show that it catches them. All are off in the
// product.
struct KnownBugs {
  bool blame_reporting_ranks = false;    // a hang is blamed on the lowest rank that reports on it
  bool blame_stopped_workers = false;    // a worker that leaves on request counts as lost
  bool blame_writers_in_turn = false;    // a rank that writes other attempts first counts as hung
  bool charge_lost_hosts = false;        // every failure is charged to the job's own budget
  bool choose_bad_hosts = false;         // ignores the faults charged to a host
  bool drop_needed_images = false;       // a Hello's images are deleted though a job needs them
  bool forget_submitted_layout = false;  // the smaller layout replaces the submitted one
  bool never_grow = false;               // a shrunk job never grows
  bool quarantine_on_one_word = false;   // one host that finds a commit damaged suffices
  // Messages of older group epochs are accepted as messages of the current one.
  bool accept_stale_epochs = false;
  bool accept_unasked_answers = false;  // any worker may report a commit as damaged or deleted
  bool ignore_device_quotas = false;    // jobs start although their namespace has no devices left
};

struct CoordinatorOptions {
  TimeLimits limits = MakeTimeLimits(3);
  // Default checkpoint.folder of a job that states none, absolute; empty: such jobs have no folder.
  std::string checkpoint_folder;
  // Identity of that folder (checkpoint/format/folder.h), without which a host does not use it;
  // empty: not known.
  std::string checkpoint_folder_id;
  Planner planner;
  KeepEnded keep_ended;                          // by default all
  std::shared_ptr<const Namespaces> namespaces;  // null: there are none, and no quotas
  int64_t most_user_jobs = 1000;                 // that have not ended, of one identity
  KnownBugs bugs;
};

// Sets the root of checkpoints of the job's namespace, else the coordinator's folder, in a spec
// that does not state checkpoint.folder; "" counts as stated.
void FillCheckpointFolder(const CoordinatorOptions& options, v1::JobSpec* spec);

// Returns the identity of the spec's checkpoint.folder, as far as it is known before the job runs;
// otherwise an empty string.
std::string KnownFolderId(const CoordinatorOptions& options, const v1::JobSpec& spec);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_STATE_OPTIONS_H_
