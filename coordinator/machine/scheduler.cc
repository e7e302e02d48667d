#include "coordinator/machine/scheduler.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/text/count_text.h"
#include "coordinator/job/doubts.h"
#include "coordinator/job/group.h"
#include "coordinator/job/growth.h"
#include "coordinator/job/images.h"
#include "coordinator/job/job_record.h"
#include "coordinator/job/running_layout.h"
#include "coordinator/state/event_kind.h"
#include "coordinator/state/job_state.h"
#include "coordinator/state/preference.h"
#include "coordinator/state/quota.h"
#include "plan/job/job_name.h"
#include "plan/layout/bucket_origin.h"

namespace troupe {
namespace {

enum class Placement {
  kStarted,
  kWaitsItsTurn,
  kWaitsForQuota,  // until other jobs of its namespace end
  kLacksCapacity,
  kBackingOff
};

// Whether there are quotas of devices.
bool LimitsDevices(const Turn& turn) {
  return turn.options.namespaces != nullptr && !turn.options.bugs.ignore_device_quotas;
}

int64_t DevicesLeftFor(const Job& job, const DeviceUse& use, const Turn& turn) {
  if (!LimitsDevices(turn)) return kNoDeviceLimit;
  return DevicesLeft(turn.options.namespaces->FindOf(job.id()), use.OfOthers(job.id()));
}

// The fleet as one pass over the queue sees it; refreshed after each start.
struct View {
  ClusterView free;
  ClusterView all;
  DeviceUse use;

  View(const Turn& turn, const std::map<std::string, Job>& jobs)
      : free(ListDevices(turn.fleet, true)),
        all(ListDevices(turn.fleet, false)),
        use(LimitsDevices(turn) ? DeviceUse(turn.fleet, jobs) : DeviceUse()) {}
  int free_count() const { return static_cast<int>(free.free_devices.size()); }
  int all_count() const { return static_cast<int>(all.free_devices.size()); }
};

void ReportWaiting(Job& job, std::string what, Turn& turn) {
  const bool first = job.waiting_for.empty();
  job.waiting_for = std::move(what);
  if (first) RecordEvent(job, event::kWaitingForCapacity, job.waiting_for, turn);
}

// Places on unsuspected devices first; see coordinator/state/preference.h.
StatusOr<v1::Plan> PlaceOn(const ClusterView& view, const v1::JobSpec& spec, const v1::Plan& plan,
                           const Turn& turn) {
  if (turn.options.bugs.choose_bad_hosts) return turn.options.planner.place(spec, plan, view);
  return PlaceByPreference(turn.options.planner, spec, plan,
                           ViewsByPreference(view, plan.ranks_size(), turn.fleet.blame, turn.now,
                                             turn.limits().blame_half_life));
}

// Whether former ranks of the job end shortly and free their devices.
bool RanksStillEnd(const Job& job, const Turn& turn) {
  return job.choose_time && turn.now < *job.choose_time && HoldsDevices(turn.fleet, job.id());
}

// Whether the devices of the job's own former ranks, which end shortly, may spare it the suspected
// devices.
bool WaitsForItsRanks(const Job& job, const ClusterView& free_view, int ranks, const Turn& turn) {
  return RanksStillEnd(job, turn) &&
         CountClean(free_view, turn.fleet.blame, turn.now, turn.limits().blame_half_life) < ranks;
}

// Whether a job without a group may be placed on `ranks` ranks, fewer than it was submitted for.
bool MayShrinkTo(int ranks, const Job& job, const Fleet& fleet) {
  if (job.may_shrink) return true;
  // It has at least as many ranks as it ran on, so it only waits for the end of its own ranks.
  return job.smaller && job.record.recovering() && ranks >= job.plan.ranks_size() &&
         job.spec.fault_tolerance().allow_layout_change() && !HoldsDevices(fleet, job.id());
}

// Continues on a smaller layout, if the job may and there is one that fits the free devices, of
// which it may use `devices_left`.
bool StartSmaller(Job& job, const ClusterView& free_view, int64_t devices_left, Turn& turn) {
  if (!job.may_shrink && !job.smaller) return false;
  const Planner& planner = turn.options.planner;
  const int64_t devices =
      std::min(static_cast<int64_t>(free_view.free_devices.size()), devices_left);
  const std::optional<v1::JobSpec> smaller =
      planner.smaller_layout(job.spec, static_cast<int>(devices));
  if (!smaller) return false;
  const v1::Plan& submitted = SubmittedPlan(job);
  StatusOr<v1::Plan> plan = planner.make_plan(*smaller, &submitted.device_profile());
  if (!plan.ok() || !MayShrinkTo(plan->ranks_size(), job, turn.fleet)) return false;
  InheritBucketNumbers(*smaller, submitted, &*plan);
  if (submitted.has_device()) {
    // The same device kind keeps the same kernels.
    *plan->mutable_device() = submitted.device();
    plan->set_threads_per_rank(submitted.threads_per_rank());
  }
  StatusOr<v1::Plan> placed = PlaceOn(free_view, *smaller, *plan, turn);
  if (!placed.ok()) return false;
  UseSmallerLayout(*smaller, job, turn);
  if (turn.options.bugs.forget_submitted_layout) {
    job.spec = *smaller;
    turn.effects.writes.PutSpec(job.id(), job.spec);
  }
  RecordEvent(
      job, event::kRecovering,
      fmt::format(
          "continues with data_parallel_replicate_degree {} and data_parallel_shard_degree {}",
          smaller->parallelism().data_parallel_replicate_degree(),
          smaller->parallelism().data_parallel_shard_degree()),
      turn);
  StartGroup(job, *std::move(placed), turn);
  return true;
}

// Handles a job that needs more devices than `devices_left`, the rest of the quota of its
// namespace.
Placement WaitForQuota(Job& job, const View& view, int ranks, int64_t devices_left, Turn& turn) {
  if (!ContinuesFromImages(job) && StartSmaller(job, view.free, devices_left, turn))
    return Placement::kStarted;
  const v1::Namespace* const space = FindNamespaceOf(turn.options.namespaces.get(), job.id());
  job.waiting_free_count = -1;
  ReportWaiting(job, QuotaWaitText(space, job.id(), ranks, view.use.OfOthers(job.id())), turn);
  // A job that can never start by the present quota or fleet blocks no other one.
  return ranks <= DevicesLeft(space, 0) && ranks <= view.all_count() ? Placement::kWaitsForQuota
                                                                     : Placement::kLacksCapacity;
}

Placement TryPlace(Job& job, const View& view, Turn& turn) {
  if (job.place_not_before && turn.now < *job.place_not_before) return Placement::kBackingOff;
  const bool from_images = ContinuesFromImages(job);
  if (std::string reading = AwaitedReading(job); !reading.empty() && !from_images) {
    ReportWaiting(job, std::move(reading), turn);
    return Placement::kBackingOff;
  }
  const Planner& planner = turn.options.planner;
  const v1::Plan& submitted = SubmittedPlan(job);
  const int ranks = submitted.ranks_size();
  const int64_t devices_left = DevicesLeftFor(job, view.use, turn);
  const int wanted = from_images ? job.plan.ranks_size() : ranks;  // images have its own layout
  if (wanted > devices_left) return WaitForQuota(job, view, wanted, devices_left, turn);
  Status shortage;
  if (view.free_count() >= ranks || from_images) {
    if (!from_images && WaitsForItsRanks(job, view.free, ranks, turn))
      return Placement::kWaitsItsTurn;
    StatusOr<v1::Plan> placed =
        from_images ? PlaceAtImages(job, view.free) : PlaceOn(view.free, job.spec, submitted, turn);
    if (placed.ok()) {
      // Images have the running layout.
      if (!from_images) ForgetSmallerLayout(job, turn);
      StartGroup(job, *std::move(placed), turn);
      return Placement::kStarted;
    }
    shortage = placed.status();
  }
  if (!from_images && StartSmaller(job, view.free, devices_left, turn)) return Placement::kStarted;
  // Nothing is missing if the job's former ranks, which are ending, hold what it needs.
  const bool has_enough =
      !from_images && RanksStillEnd(job, turn) &&
      ListDevicesFor(turn.fleet, job.id()).free_devices.size() >= static_cast<size_t>(ranks);
  if (has_enough) return Placement::kWaitsItsTurn;
  if (!shortage.ok()) {
    ReportWaiting(job, std::string(Message(shortage)), turn);
  } else if (job.waiting_for.empty() || job.waiting_free_count != view.free_count()) {
    // Thousands of jobs may wait: each job's text changes only with the number of free devices.
    job.waiting_free_count = view.free_count();
    ReportWaiting(job,
                  fmt::format("{} {}; {}", CountText(ranks, "rank needs", "ranks need"),
                              CountText(ranks, "device"),
                              CountText(view.free_count(), "is free", "are free")),
                  turn);
  }
  // If a worker with an image is away, other devices do not help.
  const bool could =
      from_images ? PlaceAtImages(job, view.all).ok()
                  : view.all_count() >= ranks && planner.place(job.spec, submitted, view.all).ok();
  return could ? Placement::kWaitsItsTurn : Placement::kLacksCapacity;
}

// Sets the reason why `job` waits: it is the turn of the job `first`, whose name the members of
// another namespace do not learn.
void ReportBehind(const std::string& first, Job& job, Turn& turn) {
  const bool is_own =
      turn.options.namespaces == nullptr || NamespaceOf(first) == NamespaceOf(job.id());
  std::string text = is_own ? fmt::format("waits behind jobs/{}", first)
                            : std::string("waits behind a job of another namespace");
  const bool backs_off = job.place_not_before && turn.now < *job.place_not_before;
  if (backs_off || job.waiting_for == text) return;
  job.waiting_free_count = -1;  // its text changes when its turn comes
  ReportWaiting(job, std::move(text), turn);
}

}  // namespace

void ConsiderGrowths(const PlacedJobs& placed, const std::set<std::string>& active,
                     std::map<std::string, Job>* jobs, Turn& turn) {
  std::optional<DeviceUse> use;
  for (const std::string& id : active) {
    Job& job = jobs->at(id);
    if (!job.smaller) continue;
    if (!use) use = LimitsDevices(turn) ? DeviceUse(turn.fleet, *jobs) : DeviceUse();
    const QueueKey own = QueueKeyOf(job);
    const auto next = placed.wait_for_quota.find(NamespaceOf(id));
    const bool outranked = (placed.waits_its_turn && *placed.waits_its_turn < own) ||
                           (next != placed.wait_for_quota.end() && next->second < own);
    ConsiderGrowth(job, outranked, DevicesLeftFor(job, *use, turn), turn);
  }
}

PlacedJobs PlaceQueuedJobs(const std::set<QueueKey>& queue, std::map<std::string, Job>* jobs,
                           Turn& turn) {
  PlacedJobs placed;
  View view(turn, *jobs);
  for (auto key = queue.begin(); key != queue.end(); ++key) {
    Job& job = jobs->at(key->id);
    const auto next = placed.wait_for_quota.find(NamespaceOf(key->id));
    if (next != placed.wait_for_quota.end()) {
      ReportBehind(next->second.id, job, turn);
      continue;
    }
    switch (TryPlace(job, view, turn)) {
      case Placement::kStarted:
        placed.started.push_back(key->id);
        view = View(turn, *jobs);
        break;
      case Placement::kWaitsItsTurn:
        placed.waits_its_turn = *key;
        for (auto behind = std::next(key); behind != queue.end(); ++behind)
          ReportBehind(key->id, jobs->at(behind->id), turn);
        return placed;
      case Placement::kWaitsForQuota:
        placed.wait_for_quota[std::string(NamespaceOf(key->id))] = *key;
        break;
      case Placement::kLacksCapacity:
      case Placement::kBackingOff:
        break;
    }
  }
  return placed;
}

}  // namespace troupe
