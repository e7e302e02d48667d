// The whole coordinator as one pure state machine: fleet, queue and jobs. No clock, thread,
// randomness, file or socket is touched here; the shell (coordinator/server.h) and the simulator
// drive the same functions.
//
// Contract of the driver: pass one event at a time; perform the effects of an event in the order of
// the fields of Effects, and make the writes durable before any other effect; send a Tick at or
// after NextDeadline(state) when no other event is waiting. After a crash at any point, Recover
// continues from what is durable.
#ifndef TROUPE_COORDINATOR_MACHINE_H_
#define TROUPE_COORDINATOR_MACHINE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "base/time_limits.h"
#include "coordinator/catalog.h"
#include "coordinator/event.h"
#include "coordinator/fleet.h"
#include "coordinator/job.h"
#include "coordinator/log_reads.h"
#include "coordinator/options.h"
#include "coordinator/scheduler.h"
#include "coordinator/traces.h"

namespace troupe {

// The removal of a job, which waits until the files of its checkpoints are deleted.
struct JobRemoval {
  std::vector<CallId> callers;
  MonotonicTime deadline;    // then the wait ends (EndLateRemovals)
  bool checkpoints = false;  // its commits are to be deleted too
};

struct CoordinatorState {
  CoordinatorOptions options;
  uint64_t leader_epoch = 0;
  Fleet fleet;
  std::map<std::string, Job> jobs;              // by id
  std::set<std::string> active;                 // jobs that have a deadline
  std::set<QueueKey> queue;                     // jobs that wait for devices, in scheduling order
  std::map<std::string, std::string> requests;  // request id → job id
  std::map<std::string, std::string> request_digests;  // request id → digest of the request
  uint64_t last_sequence = 0;                          // sequence number of the newest job
  // A new job's group epochs are above this value, which a deleted job may have used. The deleted
  // job's name may be reused, and workers drop messages with an epoch that is not above all those
  // that they received for that name.
  uint64_t epoch_floor = 0;
  LogReads log_reads;
  std::map<std::string, JobRemoval> removals;  // by job that is being deleted
  MonotonicTime keep_ended_time;  // when ended jobs are next checked, if old ones are removed
  Traces traces;
};

// The state of a coordinator that starts with the contents of `image`. `leader_epoch` is the new
// one, already durable (AdvanceLeaderEpoch). Jobs that were running wait up to the reconnect grace
// for their workers' Hello.
CoordinatorState Recover(CoordinatorOptions options, const CatalogImage& image,
                         uint64_t leader_epoch, MonotonicTime now);

Effects Step(CoordinatorState& state, const Event& event);

// When the next Tick is due; absent: never, in the present state.
std::optional<MonotonicTime> NextDeadline(const CoordinatorState& state);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_MACHINE_H_
