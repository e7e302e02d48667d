#include "coordinator/scheduler.h"

#include <utility>

#include "coordinator/group.h"

namespace troupe {
namespace {

enum class Placement { kStarted, kWaitsItsTurn, kLacksCapacity, kBackingOff };

void SayWaiting(Job& job, const std::string& what, Turn& turn) {
  const bool first = job.waiting_for.empty();
  job.waiting_for = what;
  if (first) RecordEvent(job, "WAITING_FOR_CAPACITY", what, turn);
}

// Continues on a smaller layout, if the job may and there is one that fits the free devices.
bool StartSmaller(Job& job, const ClusterView& free_view, Turn& turn) {
  const Planner& planner = turn.options.planner;
  const std::optional<v1::JobSpec> smaller =
      planner.smaller_layout(job.spec, static_cast<int>(free_view.free_devices.size()));
  if (!smaller) return false;
  StatusOr<v1::Plan> plan = planner.make_plan(*smaller);
  if (!plan.ok()) return false;
  if (job.plan.has_device()) {
    // The same device kind still gives the same kernels.
    *plan->mutable_device() = job.plan.device();
    plan->set_threads_per_rank(job.plan.threads_per_rank());
  }
  StatusOr<v1::Plan> placed = planner.place(*smaller, *plan, free_view);
  if (!placed.ok()) return false;
  job.spec = *smaller;
  turn.effects.writes.PutSpec(job.id(), job.spec);
  RecordEvent(job, "RECOVERING",
              fmt::format("goes on with data_parallel_replicate_degree {}",
                          smaller->parallelism().data_parallel_replicate_degree()),
              turn);
  StartGroup(job, *std::move(placed), turn);
  return true;
}

Placement TryPlace(Job& job, Turn& turn) {
  if (job.place_not_before && turn.now < *job.place_not_before) return Placement::kBackingOff;
  const Planner& planner = turn.options.planner;
  const int ranks = job.plan.ranks_size();
  const ClusterView free_view = ListDevices(turn.fleet, true);
  Status shortage = FailedPrecondition("{} ranks need {} devices; {} are free", ranks, ranks,
                                       free_view.free_devices.size());
  if (static_cast<int>(free_view.free_devices.size()) >= ranks) {
    StatusOr<v1::Plan> placed = planner.place(job.spec, job.plan, free_view);
    if (placed.ok()) {
      StartGroup(job, *std::move(placed), turn);
      return Placement::kStarted;
    }
    shortage = placed.status();
  }
  if (job.may_shrink && StartSmaller(job, free_view, turn)) return Placement::kStarted;
  const ClusterView all = ListDevices(turn.fleet, false);
  const bool could = static_cast<int>(all.free_devices.size()) >= ranks &&
                     planner.place(job.spec, job.plan, all).ok();
  SayWaiting(job, std::string(Message(shortage)), turn);
  return could ? Placement::kWaitsItsTurn : Placement::kLacksCapacity;
}

}  // namespace

QueueKey QueueKeyOf(const Job& job) {
  return {-int64_t{job.spec.priority()}, job.record.sequence(), job.id()};
}

void PlaceQueuedJobs(std::set<QueueKey>* queue, std::map<std::string, Job>* jobs, Turn& turn) {
  for (auto key = queue->begin(); key != queue->end();) {
    switch (TryPlace(jobs->at(key->id), turn)) {
      case Placement::kStarted:
        key = queue->erase(key);
        break;
      case Placement::kWaitsItsTurn:
        return;
      case Placement::kLacksCapacity:
      case Placement::kBackingOff:
        ++key;
        break;
    }
  }
}

}  // namespace troupe
