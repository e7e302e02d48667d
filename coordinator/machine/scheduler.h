// The queue and gang placement: all ranks of a job or none.
//
// Jobs are tried by priority, then age. A job that the present fleet could hold if all its devices
// were free keeps its place: no job behind it is placed first, so that large jobs do not starve. A
// job that the fleet could not hold waits for capacity and blocks no other job.
//
// The running jobs of a namespace together use no more devices than its quota allows. A job that
// would exceed the quota waits until others of its namespace end, and the jobs of its namespace
// behind it wait too. Other namespaces are not concerned.
//
// A job is placed on its submitted layout whenever that fits. A recovering job that may change its
// layout uses the largest smaller layout that fits: after layout_patience (base/time_limits.h), or,
// if that layout has at least as many ranks as it last ran on, as soon as its former ranks have
// ended.
//
// Plans of new, resumed and rebuilt jobs are made outside the engine
// (coordinator/service/api_service.cc) but placed here, within a turn: a placement, and a smaller
// plan that may be made for it, are valid for the free devices of this turn, and their leases are
// recorded in the same turn. A placement from another thread would have to be checked against a
// changed fleet, and jobs behind it in the queue would have to wait for the result.
#ifndef TROUPE_COORDINATOR_MACHINE_SCHEDULER_H_
#define TROUPE_COORDINATOR_MACHINE_SCHEDULER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "coordinator/machine/job_index.h"
#include "coordinator/state/job_state.h"
#include "coordinator/state/turn.h"

namespace troupe {

struct PlacedJobs {
  std::vector<std::string> started;        // ids
  std::optional<QueueKey> waits_its_turn;  // the job that blocks everything behind it
  // By namespace: the job that waits for the quota and blocks the jobs of its namespace behind it.
  std::map<std::string, QueueKey, std::less<>> wait_for_quota;
};

// Decides for each job of `active` with a smaller layout than submitted when it grows, after
// `placed`.
void ConsiderGrowths(const PlacedJobs& placed, const std::set<std::string>& active,
                     std::map<std::string, Job>* jobs, Turn& turn);

// Starts every job of `queue` that is next in order and can be placed. REQUIRES: `queue` holds
// exactly the keys of the waiting jobs.
PlacedJobs PlaceQueuedJobs(const std::set<QueueKey>& queue, std::map<std::string, Job>* jobs,
                           Turn& turn);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_MACHINE_SCHEDULER_H_
