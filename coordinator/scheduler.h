// The queue and gang placement: all ranks of a job or none.
//
// Jobs are tried by priority, then age. A job that the present fleet could hold if all its devices
// were free keeps its place: nothing behind it is placed before it, so that large jobs do not
// starve. One that it could not hold waits for capacity and holds up nobody.
//
// A job is placed on its submitted layout wherever that fits. One that recovers and may change its
// layout takes the largest smaller one that fits: after layout_patience (base/time_limits.h), or, if
// that has no fewer ranks than it ran on before, as soon as its former ranks have ended.
//
// Plans of new, resumed and rebuilt jobs are made beside the engine (coordinator/plan_desk.h), but
// placed here, within a turn: a placement, and the smaller plan that may be made for it, hold for
// the free devices of this very turn, whose leases are recorded with them. What another thread
// placed would have to be checked against a fleet that has changed meanwhile, and jobs behind it in
// the queue would have to wait for the answer.
#ifndef TROUPE_COORDINATOR_SCHEDULER_H_
#define TROUPE_COORDINATOR_SCHEDULER_H_

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "coordinator/job.h"
#include "coordinator/turn.h"

namespace troupe {

struct QueueKey {
  int64_t negated_priority = 0;
  uint64_t sequence = 0;
  std::string id;
  auto operator<=>(const QueueKey&) const = default;
};

QueueKey QueueKeyOf(const Job& job);

struct PlacedJobs {
  std::vector<std::string> started;        // ids
  std::optional<QueueKey> waits_its_turn;  // the job that holds up everything behind it
};

// Starts every job of `queue` whose turn it is and that can be placed; they are removed from
// `queue`. REQUIRES: `queue` holds the keys of exactly the jobs that wait.
PlacedJobs PlaceQueuedJobs(std::set<QueueKey>* queue, std::map<std::string, Job>* jobs, Turn& turn);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_SCHEDULER_H_
