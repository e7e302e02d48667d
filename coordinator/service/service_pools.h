// The pools of actors for the service's work that blocks: plans, checks of new jobs' data, the
// first reads of watchers, and the certificates of workers. Strangers may join, so joins have a
// pool of their own, and a flood of them delays neither renewals nor new join tokens.
//
// Overload: a pool refuses work beyond its limit with RESOURCE_EXHAUSTED, which names the pool and
// the limit and ends the call or the stream that asked for the work.
#ifndef TROUPE_COORDINATOR_SERVICE_SERVICE_POOLS_H_
#define TROUPE_COORDINATOR_SERVICE_SERVICE_POOLS_H_

#include <cstddef>

#include "actor/system.h"
#include "actor/work_pool.h"
#include "base/status.h"

namespace troupe {

// The work that each pool does at a time.
inline constexpr int kPlanWorkers = 2;
inline constexpr int kDataCheckWorkers = 4;  // they wait for file systems
inline constexpr int kHistoryWorkers = 1;
inline constexpr int kEnrollmentWorkers = 1;
inline constexpr int kJoinWorkers = 1;
inline constexpr int kPoolWorkers =
    kPlanWorkers + kDataCheckWorkers + kHistoryWorkers + kEnrollmentWorkers + kJoinWorkers;

// The most work that waits for each pool.
struct MostWaiting {
  size_t plans = 64;  // the memory of each is bounded (plan/validate/)
  size_t data_checks = 256;
  size_t new_watchers = 1024;
  size_t enrollments = 256;  // renewals and new join tokens
  size_t joins = 256;
};

struct ServicePools {
  WorkPool plans;
  WorkPool data_checks;
  WorkPool history;
  WorkPool enrollment;
  WorkPool joins;
};

// Spawns the pools as root actors. REQUIRES: `actors` has kPoolWorkers threads next to those for
// its other actors; it outlives the pools.
StatusOr<ServicePools> SpawnServicePools(ActorSystem& actors, const MostWaiting& most_waiting = {});

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_SERVICE_SERVICE_POOLS_H_
