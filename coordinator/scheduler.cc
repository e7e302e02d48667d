#include "coordinator/scheduler.h"

#include <utility>

#include "coordinator/group.h"

namespace troupe {
namespace {

enum class Placement { kStarted, kWaitsItsTurn, kLacksCapacity, kBackingOff };

// The fleet as one pass over the queue sees it; looked at again after each start.
struct View {
  ClusterView free;
  ClusterView all;

  explicit View(const Fleet& fleet)
      : free(ListDevices(fleet, true)), all(ListDevices(fleet, false)) {}
  int free_count() const { return static_cast<int>(free.free_devices.size()); }
  int all_count() const { return static_cast<int>(all.free_devices.size()); }
};

void SayWaiting(Job& job, std::string what, Turn& turn) {
  const bool first = job.waiting_for.empty();
  job.waiting_for = std::move(what);
  if (first) RecordEvent(job, "WAITING_FOR_CAPACITY", job.waiting_for, turn);
}

// Continues on a smaller layout, if the job may and there is one that fits the free devices.
bool StartSmaller(Job& job, const ClusterView& free_view, Turn& turn) {
  const Planner& planner = turn.options.planner;
  const std::optional<v1::JobSpec> smaller =
      planner.smaller_layout(job.spec, static_cast<int>(free_view.free_devices.size()));
  if (!smaller) return false;
  StatusOr<v1::Plan> plan = planner.make_plan(*smaller, &job.plan.device_profile());
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
              fmt::format("goes on with data_parallel_replicate_degree {} and "
                          "data_parallel_shard_degree {}",
                          smaller->parallelism().data_parallel_replicate_degree(),
                          smaller->parallelism().data_parallel_shard_degree()),
              turn);
  StartGroup(job, *std::move(placed), turn);
  return true;
}

Placement TryPlace(Job& job, const View& view, Turn& turn) {
  if (job.place_not_before && turn.now < *job.place_not_before) return Placement::kBackingOff;
  const Planner& planner = turn.options.planner;
  const int ranks = job.plan.ranks_size();
  Status shortage;
  if (view.free_count() >= ranks) {
    StatusOr<v1::Plan> placed = planner.place(job.spec, job.plan, view.free);
    if (placed.ok()) {
      StartGroup(job, *std::move(placed), turn);
      return Placement::kStarted;
    }
    shortage = placed.status();
  }
  if (job.may_shrink && StartSmaller(job, view.free, turn)) return Placement::kStarted;
  if (!shortage.ok()) {
    SayWaiting(job, std::string(Message(shortage)), turn);
  } else if (job.waiting_for.empty() || job.waiting_free_count != view.free_count()) {
    // Thousands may wait: what is said of each changes only with the number.
    job.waiting_free_count = view.free_count();
    SayWaiting(
        job, fmt::format("{} ranks need {} devices; {} are free", ranks, ranks, view.free_count()),
        turn);
  }
  const bool could = view.all_count() >= ranks && planner.place(job.spec, job.plan, view.all).ok();
  return could ? Placement::kWaitsItsTurn : Placement::kLacksCapacity;
}

}  // namespace

QueueKey QueueKeyOf(const Job& job) {
  return {-int64_t{job.spec.priority()}, job.record.sequence(), job.id()};
}

std::vector<std::string> PlaceQueuedJobs(std::set<QueueKey>* queue,
                                         std::map<std::string, Job>* jobs, Turn& turn) {
  std::vector<std::string> started;
  View view(turn.fleet);
  for (auto key = queue->begin(); key != queue->end();) {
    switch (TryPlace(jobs->at(key->id), view, turn)) {
      case Placement::kStarted:
        started.push_back(key->id);
        key = queue->erase(key);
        view = View(turn.fleet);
        break;
      case Placement::kWaitsItsTurn:
        return started;
      case Placement::kLacksCapacity:
      case Placement::kBackingOff:
        ++key;
        break;
    }
  }
  return started;
}

}  // namespace troupe
