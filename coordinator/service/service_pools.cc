#include "coordinator/service/service_pools.h"

#include <chrono>
#include <utility>

#include "base/clock.h"

namespace troupe {
namespace {

// The longest time that a person's plan waits for its turn.
constexpr Duration kPlanTurnLimit = std::chrono::seconds(30);

}  // namespace

StatusOr<ServicePools> SpawnServicePools(ActorSystem& actors, const MostWaiting& most_waiting) {
  TROUPE_ASSIGN_OR_RETURN(WorkPool plans,
                          WorkPool::Spawn(actors, {.name = "plans",
                                                   .workers = kPlanWorkers,
                                                   .max_waiting = most_waiting.plans,
                                                   .limit = kPlanTurnLimit}));
  TROUPE_ASSIGN_OR_RETURN(WorkPool data_checks,
                          WorkPool::Spawn(actors, {.name = "data checks",
                                                   .workers = kDataCheckWorkers,
                                                   .max_waiting = most_waiting.data_checks}));
  TROUPE_ASSIGN_OR_RETURN(WorkPool history,
                          WorkPool::Spawn(actors, {.name = "new watchers",
                                                   .workers = kHistoryWorkers,
                                                   .max_waiting = most_waiting.new_watchers}));
  TROUPE_ASSIGN_OR_RETURN(WorkPool enrollment,
                          WorkPool::Spawn(actors, {.name = "enrollments",
                                                   .workers = kEnrollmentWorkers,
                                                   .max_waiting = most_waiting.enrollments}));
  TROUPE_ASSIGN_OR_RETURN(
      WorkPool joins,
      WorkPool::Spawn(
          actors, {.name = "joins", .workers = kJoinWorkers, .max_waiting = most_waiting.joins}));
  return ServicePools{std::move(plans), std::move(data_checks), std::move(history),
                      std::move(enrollment), std::move(joins)};
}

}  // namespace troupe
