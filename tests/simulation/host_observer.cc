#include "tests/simulation/host_observer.h"

#include <algorithm>

#include "base/failure_cause.h"
#include "coordinator/machine/job_index.h"
#include "coordinator/state/preference.h"
#include "coordinator/state/stop.h"

namespace troupe::simulation {
namespace {

// Number of groups that a host must fail before it counts as known to be bad.
constexpr size_t kStrikes = 3;

// Returns the job and epoch of a rank that failed by itself, as reported by its worker.
std::optional<std::pair<std::string, uint64_t>> FailureIn(const v1::WorkerMessage& message) {
  if (message.has_rank_stopped() && message.rank_stopped().crashed()) {
    return std::pair(message.rank_stopped().job(), message.rank_stopped().group_epoch());
  }
  // Whether a commit is damaged or its reader bad is for another reader to decide.
  const bool doubts = !message.rank_failed().bad_checkpoint_path().empty();
  if (message.has_rank_failed() && !message.rank_failed().secondary() && !doubts) {
    return std::pair(message.rank_failed().job(), message.rank_failed().group_epoch());
  }
  return std::nullopt;
}

uint64_t GroupsOn(const std::string& worker, const CoordinatorState& state) {
  return static_cast<uint64_t>(
      std::count_if(state.jobs.begin(), state.jobs.end(), [&](const auto& entry) {
        const Job& job = entry.second;
        return job.group &&
               std::any_of(job.plan.ranks().begin(), job.plan.ranks().end(),
                           [&](const v1::RankPlacement& rank) { return rank.worker() == worker; });
      }));
}

// The times that the worker is blamed for its loss.
int64_t LossesOf(const std::string& worker, const Fleet& fleet) {
  const auto blame = fleet.blame.find(worker);
  if (blame == fleet.blame.end()) return 0;
  const auto& faults = blame->second.faults;
  return std::count_if(faults.begin(), faults.end(), [](const troupe::HostFault& fault) {
    return fault.text.starts_with("WORKER_LOST");
  });
}

// Whether group `epoch` of the job has been found to hang, and the cause is not recorded yet.
bool Hangs(const Job& job, uint64_t epoch) {
  return job.group && job.group->epoch == epoch && job.group->phase == GroupPhase::kDraining &&
         job.group->failure.cause() == cause::kHang;
}

int HealthyFreeDevices(const CoordinatorState& state, const std::set<std::string>& known_bad) {
  int free = 0;
  for (const ClusterDevice& device : ListDevices(state.fleet, true).free_devices) {
    free += !known_bad.contains(device.worker);
  }
  return free;
}

}  // namespace

void HostObserver::CoordinatorStarts() {
  for (auto& [id, view] : jobs_) {
    view.could_grow_since.reset();
    view.hang.reset();
  }
  stops_.clear();  // a goodbye is not durable
}

void HostObserver::Hears(const v1::WorkerMessage& message, SessionId session,
                         const CoordinatorState& state) {
  const auto failure = FailureIn(message);
  const auto worker = state.fleet.sessions.find(session);
  if (worker == state.fleet.sessions.end()) return;
  if (message.has_goodbye() && message.leader_epoch() == state.leader_epoch) {
    stops_[worker->second] = LossesOf(worker->second, state.fleet);
    goodbyes_ += GroupsOn(worker->second, state);
  }
  if (message.has_rank_flight() && message.leader_epoch() == state.leader_epoch) {
    JobView& view = jobs_[message.rank_flight().job()];
    if (view.hang && view.epoch == message.rank_flight().group_epoch())
      view.hang->reported.insert(message.rank_flight().rank());
  }
  if (!failure) return;
  const auto job = state.jobs.find(failure->first);
  if (job == state.jobs.end() || !job->second.group ||
      job->second.group->epoch != failure->second) {
    return;
  }
  strikes_[worker->second].insert(*failure);
}

uint64_t HostObserver::strikes() const {
  uint64_t strikes = 0;
  for (const auto& [worker, failures] : strikes_) {
    if (world_.FaultOf(worker) != HostFault::kNone) strikes += failures.size();
  }
  return strikes;
}

void HostObserver::CheckBlame(const Fleet& fleet) {
  for (const auto& [worker, blame] : fleet.blame) {
    if (world_.failed_writers.contains(worker)) continue;
    for (const troupe::HostFault& fault : blame.faults) {
      world_.truth.Check(
          !fault.text.starts_with("CHECKPOINT_FAILED"), kBlamedWrite,
          fmt::format("{} is blamed, and no write failed there: {}", worker, fault.text));
    }
  }
}

void HostObserver::CheckHangs(const CoordinatorState& state) {
  for (auto& [id, view] : jobs_) {
    const auto job = state.jobs.find(id);
    if (!view.hang || (job != state.jobs.end() && Hangs(job->second, view.epoch))) continue;
    const Hang hang = *std::exchange(view.hang, std::nullopt);
    if (job == state.jobs.end()) continue;
    const v1::Failure& failure = job->second.record.last_failure();
    const bool is_of_the_hang =
        failure.cause() == cause::kHang && failure.SerializeAsString() != hang.last_failure;
    if (!is_of_the_hang || failure.rank() < 0) continue;
    ++blamed_hangs_;
    world_.truth.Check(!hang.reported.contains(failure.rank()) ||
                           !world_.bus.Waits(id, view.epoch, failure.rank()),
                       kBlamedWait,
                       fmt::format("{} epoch {}: rank {} waited and is blamed: {}", id, view.epoch,
                                   failure.rank(), failure.message()));
  }
}

void HostObserver::CheckStops(const Fleet& fleet) {
  for (const auto& [worker, losses] : stops_) {
    world_.truth.Check(LossesOf(worker, fleet) <= losses, kBlamedStop,
                       fmt::format("{} is blamed as lost after its goodbye", worker));
  }
  std::erase_if(stops_, [&](const auto& stop) {
    const Worker* const worker = FindWorker(stop.first, fleet);
    return worker == nullptr || worker->session != 0;
  });
}

void HostObserver::Observe(const CoordinatorState& state, MonotonicTime now) {
  CheckBlame(state.fleet);
  CheckStops(state.fleet);
  CheckHangs(state);
  std::optional<int> free_devices;
  for (const std::string& id : state.index.active()) {
    const Job& job = state.jobs.at(id);
    if (!job.group) continue;
    JobView& view = jobs_[id];
    if (job.group->epoch != view.epoch) OnNewGroup(job, state);
    if (!view.hang && Hangs(job, view.epoch))
      view.hang = {job.record.last_failure().SerializeAsString(), {}};
    if (job.plan.ranks_size() >= SubmittedRanks(id)) continue;
    // The job does not grow while one before it in the queue may take the devices; its patience
    // then starts again.
    if (IsOutranked(job, state)) {
      view.could_grow_since.reset();
      continue;
    }
    if (!free_devices) {
      const ClusterView free = WithoutSetAside(ListDevices(state.fleet, true), state.fleet);
      free_devices = static_cast<int>(free.free_devices.size());
    }
    CheckGrowth(job, *free_devices, now, view);
  }
}

bool HostObserver::IsOutranked(const Job& job, const CoordinatorState& state) const {
  const QueueKey key = QueueKeyOf(job);
  if (state.index.queue().empty() || !(*state.index.queue().begin() < key)) return false;
  const auto devices = static_cast<int>(ListDevices(state.fleet, false).free_devices.size());
  return std::any_of(
      state.index.queue().begin(), state.index.queue().end(),
      [&](const QueueKey& other) { return other < key && SubmittedRanks(other.id) <= devices; });
}

void HostObserver::OnNewGroup(const Job& job, const CoordinatorState& state) {
  JobView& view = jobs_[job.id()];
  const int ranks = job.plan.ranks_size();
  growths_ += view.epoch != 0 && ranks > view.ranks;
  shrinks_ += ranks < SubmittedRanks(job.id());
  view = {job.group->epoch, ranks, std::nullopt, std::nullopt};
  std::set<std::string> known_bad;
  for (const auto& [worker, failures] : strikes_) {
    const bool bad = world_.FaultOf(worker) != HostFault::kNone;
    if (bad && failures.size() >= kStrikes) known_bad.insert(worker);
  }
  if (known_bad.empty()) return;
  std::map<std::string, int> chosen;
  for (const v1::RankPlacement& rank : job.plan.ranks()) {
    if (known_bad.contains(rank.worker())) ++chosen[rank.worker()];
  }
  const int spares = HealthyFreeDevices(state, known_bad);
  for (const auto& [worker, ranks_there] : chosen) {
    world_.truth.Check(ranks_there > spares, kBadHostAgain,
                       fmt::format("{} epoch {}: {} ranks on {}, which failed {} groups, and {} "
                                   "healthy devices are free",
                                   job.id(), job.group->epoch, ranks_there, worker,
                                   strikes_.at(worker).size(), spares));
  }
}

void HostObserver::CheckGrowth(const Job& job, int free_devices, MonotonicTime now, JobView& view) {
  const int missing = SubmittedRanks(job.id()) - job.plan.ranks_size();
  // Without a folder the job cannot save the step at which it would stop, nor if a host fails to
  // write or the last step is done.
  const bool can_save =
      job.has_folder() && !job.failed_writes.any() && job.record.step() < job.steps();
  if (job.group->phase != GroupPhase::kRunning || free_devices < missing || !can_save) {
    view.could_grow_since.reset();
    return;
  }
  if (!view.could_grow_since) view.could_grow_since = now;
  // The checkpoint that it stops with takes time, too; before that is requested, the jobs before it
  // in the queue may delay it.
  const bool begun = StopAttempt(job.record) != 0;
  const Duration limit = world_.limits.growth_patience +
                         (begun ? world_.limits.checkpoint_attempt : world_.limits.lease);
  world_.truth.Check(
      now - *view.could_grow_since <= limit, kGrowsBack,
      fmt::format("{} runs on {} ranks of {} though {} devices are free for {:.1f} s", job.id(),
                  job.plan.ranks_size(), SubmittedRanks(job.id()), free_devices,
                  ToSeconds(now - *view.could_grow_since)));
}

int HostObserver::SubmittedRanks(const std::string& job) const {
  const v1::ParallelismSpec& axes = catalog_.submitted(job).parallelism();
  return static_cast<int>(axes.pipeline_parallel_degree() * axes.tensor_parallel_degree() *
                          axes.data_parallel_replicate_degree());
}

}  // namespace troupe::simulation
