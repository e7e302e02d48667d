// The state of the coordinator's machine (coordinator/machine/machine.h). Data only.
#ifndef TROUPE_COORDINATOR_MACHINE_COORDINATOR_STATE_H_
#define TROUPE_COORDINATOR_MACHINE_COORDINATOR_STATE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "coordinator/machine/job_index.h"
#include "coordinator/machine/log_reads.h"
#include "coordinator/machine/traces.h"
#include "coordinator/state/event.h"
#include "coordinator/state/fleet.h"
#include "coordinator/state/job_state.h"
#include "coordinator/state/options.h"
#include "coordinator/state/quota.h"

namespace troupe {

// A call that waits until a job is removed.
struct RemovalCaller {
  CallId call = 0;
  bool checkpoints = false;  // it gets an error if a checkpoint stays
};

// The removal of a job, which waits until the files of its checkpoints are deleted.
struct JobRemoval {
  std::vector<RemovalCaller> callers;
  MonotonicTime deadline;    // then the wait ends (EndLateRemovals)
  bool checkpoints = false;  // its commits are to be deleted too
};

struct CoordinatorState {
  CoordinatorOptions options;
  uint64_t leader_epoch = 0;
  Fleet fleet;
  std::map<std::string, Job> jobs;                     // by id
  JobIndex index;                                      // finds the jobs that an event concerns
  std::map<std::string, std::string> requests;         // by RequestKey: job id
  std::map<std::string, std::string> request_digests;  // by RequestKey: digest of the request
  // By RequestKey: those whose jobs were removed and that must not create another one.
  std::map<std::string, v1::UsedRequestRecord> used_requests;
  uint64_t last_sequence = 0;  // sequence number of the newest job
  // A new job's group epochs are above this value, which a deleted job may have used. The deleted
  // job's name may be reused, and workers drop messages with an epoch that is not above all those
  // that they received for that name.
  uint64_t epoch_floor = 0;
  std::map<std::string, int64_t> refusals;  // number of refused streams, by the text for the log
  LogReads log_reads;
  std::map<std::string, JobRemoval> removals;  // by job that is being deleted
  MonotonicTime keep_ended_time;  // when ended jobs are next checked, if old ones are removed
  MonotonicTime drains_time;      // when the orders to drain workers are next checked
  Traces traces;
  std::map<std::string, SubmissionTimes, std::less<>> submissions;  // by namespace with a quota
};

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_MACHINE_COORDINATOR_STATE_H_
