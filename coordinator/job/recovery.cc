#include "coordinator/job/recovery.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "base/failure_cause.h"
#include "base/text/count_text.h"
#include "checkpoint/format/folder.h"
#include "coordinator/faults/culprit.h"
#include "coordinator/faults/hang_blame.h"
#include "coordinator/faults/host_faults.h"
#include "coordinator/faults/link_blame.h"
#include "coordinator/faults/restart_budget.h"
#include "coordinator/job/attempt_messages.h"
#include "coordinator/job/attempts.h"
#include "coordinator/job/doubts.h"
#include "coordinator/job/images.h"
#include "coordinator/job/job_end.h"
#include "coordinator/job/job_messages.h"
#include "coordinator/job/job_record.h"
#include "coordinator/job/running_layout.h"
#include "coordinator/state/event_kind.h"
#include "coordinator/state/job_failure.h"
#include "coordinator/state/job_state.h"
#include "coordinator/state/stop.h"
#include "coordinator/state/transition.h"

namespace troupe {
namespace {

constexpr int kMaxDoublings = 16;
// Number of workers that have to lack what a job needs, which never ran, before the job itself is
// blamed.
constexpr int kMostHostsTried = 3;

void StopGroup(const Job& job, const std::string& reason, bool hangs, Turn& turn) {
  v1::CoordinatorMessage message;
  v1::StopRanks* const stop = message.mutable_stop_ranks();
  stop->set_job(job.id());
  stop->set_group_epoch(job.group->epoch);
  stop->set_reason(reason);
  stop->set_report_flight(hangs);
  SendToGroup(job, message, turn);
}

// A worker of the group whose stream is closed; empty if there is none.
std::string DisconnectedWorker(const Job& job, const Turn& turn) {
  for (const v1::RankPlacement& placement : job.plan.ranks()) {
    const Worker* const worker = FindWorker(placement.worker(), turn.fleet);
    if (worker == nullptr || worker->session == 0) return placement.worker();
  }
  return {};
}

// Whether `code`, met while starting, is an error in the job's own request, which another try would
// meet again.
bool IsOfTheJob(int code) {
  switch (static_cast<StatusCode>(code)) {
    case StatusCode::kInvalidArgument:
    case StatusCode::kNotFound:
    case StatusCode::kFailedPrecondition:
    case StatusCode::kOutOfRange:
    case StatusCode::kUnimplemented:
      return true;
    default:
      return false;
  }
}

// Whether a rank's first start failed because its host lacks the job's checkpoint.folder, another
// folder that the job reads, or enough shared memory. The host is blamed while there is another
// host to try.
bool IsOfHost(const v1::RankFailed& message) {
  return (message.cause() == cause::kStorage || message.cause() == cause::kSharedMemory) &&
         static_cast<StatusCode>(message.code()) == StatusCode::kFailedPrecondition;
}

// Whether enough workers, now also `worker`, lacked what the job needs that no host is to blame.
bool EnoughHostsFailed(const Job& job, const std::string& worker, const Turn& turn) {
  const auto failed = [&](const auto& entry) {
    const auto& faults = entry.second.faults;
    return entry.first != worker &&
           std::any_of(faults.begin(), faults.end(), [&](const HostFault& fault) {
             return fault.job == job.id() &&
                    (!fault.folder.empty() || fault.text.starts_with(cause::kStorage) ||
                     fault.text.starts_with(cause::kSharedMemory));
           });
  };
  const BlameBook& book = turn.fleet.blame;
  return 1 + std::count_if(book.begin(), book.end(), failed) >= kMostHostsTried;
}

// Whether the job could be placed on hosts other than that of `worker` and those set aside.
bool HasOtherHosts(const Job& job, const std::string& worker, const Turn& turn) {
  std::set<std::string> tried;
  for (const auto& [name, other] : turn.fleet.workers) {
    const auto blame = turn.fleet.blame.find(name);
    const bool set_aside = blame != turn.fleet.blame.end() && IsSetAside(blame->second, kWholeHost);
    if (name == worker || set_aside) tried.insert(other.hello.host());
  }
  ClusterView view = ListDevicesFor(turn.fleet, job.id());
  std::erase_if(view.free_devices, [&](const ClusterDevice& device) {
    return tried.contains(device.host) ||
           StandingOf(turn.fleet.blame, device.worker, device.device.index(), turn.now,
                      turn.limits().blame_half_life) == Standing::kSetAside;
  });
  return static_cast<int>(view.free_devices.size()) >= job.plan.ranks_size() &&
         turn.options.planner.place(RunningSpec(job), job.plan, view).ok();
}

// Returns the cause that a worker stated; `otherwise` if it stated none.
std::string_view StatedCause(const std::string& stated, std::string_view otherwise) {
  return stated.empty() ? otherwise : std::string_view(stated);
}

// Whether the same step would meet this error again on any placement.
bool WouldRepeat(const v1::RankFailed& message) {
  if (message.cause() == cause::kNonfinite || message.cause() == cause::kPathOutsideRoot)
    return true;
  const auto code = static_cast<StatusCode>(message.code());
  return message.cause() == cause::kData &&
         (code == StatusCode::kInvalidArgument || code == StatusCode::kOutOfRange ||
          code == StatusCode::kFailedPrecondition || code == StatusCode::kDataLoss ||
          code == StatusCode::kResourceExhausted);
}

// Whether there were commits and every one is quarantined: from its seed the job would only appear
// to continue.
bool LostEveryCommit(const Job& job) {
  return NewestCommit(job) == nullptr && HasQuarantined(job) && !ContinuesFromImages(job);
}

// For example "ranks 2, 3 on worker-1".
std::string RanksOn(const Job& job, const v1::Failure& failure) {
  std::set<int32_t> ranks;
  for (const v1::RankPlacement& placement : job.plan.ranks()) {
    if (placement.worker() == failure.worker()) ranks.insert(placement.rank());
  }
  return fmt::format("{} {} on {}", ranks.size() == 1 ? "rank" : "ranks", fmt::join(ranks, ", "),
                     failure.worker());
}

// The one worker that has all of `ranks`; empty if there is none.
std::string OnlyWorkerOf(const Job& job, const std::vector<int>& ranks) {
  std::set<std::string> workers;
  for (const int rank : ranks) workers.insert(job.plan.ranks(rank).worker());
  return workers.size() == 1 ? *workers.begin() : std::string();
}

bool HasRankOn(const Job& job, const std::string& worker) {
  return std::any_of(job.plan.ranks().begin(), job.plan.ranks().end(),
                     [&](const v1::RankPlacement& placement) {
                       return !worker.empty() && placement.worker() == worker;
                     });
}

// Whether a restarted coordinator has not heard from `worker` yet.
bool IsAwaited(const Job& job, const std::string& worker) {
  if (job.group->phase != GroupPhase::kAdopting) return false;
  return std::any_of(job.plan.ranks().begin(), job.plan.ranks().end(),
                     [&](const v1::RankPlacement& placement) {
                       const auto rank = static_cast<size_t>(placement.rank());
                       return placement.worker() == worker && !job.group->ranks[rank].held;
                     });
}

// The loss of `worker`, which `reason` describes. A worker that ended while the coordinator was
// away may have been asked to stop, so its host is not blamed.
v1::Failure LossOf(const Job& job, const std::string& worker, const std::string& reason) {
  if (!IsAwaited(job, worker)) return MakeFailure(cause::kWorkerLost, reason, -1, worker);
  return MakeFailure(cause::kWorkerLost,
                     fmt::format("{}, while the coordinator was away: {}", worker, reason));
}

// The step after which the group failed, or from which it was to start.
int64_t FaultStep(const Job& job) {
  if (job.record.state() != v1::JOB_STATE_STARTING) return job.record.step();
  const v1::CheckpointRecord* const commit = NewestCommit(job);
  return commit != nullptr ? commit->step() : 0;
}

// The time to wait for a primary cause. If the job would end without one, the wait lasts until
// every lost host of its group is known, because a lost host is not the job's fault.
Duration CauseWait(const Job& job, const v1::Failure& failure, const Turn& turn) {
  v1::JobRecord after = job.record;
  const int64_t spent = ChargeFault(CulpritOf(failure).charged, FaultStep(job), &after);
  if (spent <= job.spec.fault_tolerance().max_restarts()) return turn.limits().drain;
  return turn.limits().lease + turn.limits().reconnect_grace;
}

// `tries`: recoveries without progress from faults that the next try may meet again, including this
// one; 0: the job is placed without a pause.
void QueueForRecovery(Job& job, int64_t tries, Turn& turn) {
  job.record.set_state(v1::JOB_STATE_RECOVERING);
  job.record.set_recovering(true);
  SetStop(std::nullopt, &job.record);
  // By then its ranks have stopped or were killed, unless a driver blocks them.
  job.choose_time = turn.now + turn.limits().abort + turn.limits().heartbeat;
  if (tries >= 2) {
    const int doublings = static_cast<int>(std::min<int64_t>(tries - 2, kMaxDoublings));
    job.place_not_before =
        turn.now + std::min(turn.limits().restart_backoff * (int64_t{1} << doublings),
                            turn.limits().restart_backoff_limit);
  }
  if (job.spec.fault_tolerance().allow_layout_change()) {
    job.shrink_time = turn.now + turn.limits().layout_patience;
  }
  turn.reschedule = true;
}

// Waits for the flight reports of all ranks, which show the rank that the others waited for.
void AwaitFlightReports(Job& job, v1::Failure failure, Turn& turn) {
  Group& group = *job.group;
  if (group.phase == GroupPhase::kDraining && group.failure.cause() == cause::kHang) return;
  group.phase = GroupPhase::kDraining;
  group.deadline = turn.now + turn.limits().abort;
  group.failure = std::move(failure);
}

}  // namespace

v1::Failure FinalFailure(const Job& job, const KnownBugs& bugs) {
  v1::Failure failure = job.group->failure;
  if (failure.cause() != cause::kHang) return failure;
  std::vector<std::optional<v1::RankFlight>> flights(job.group->ranks.size());
  for (const auto& [rank, flight] : job.group->flights) flights[static_cast<size_t>(rank)] = flight;
  HangBlame blame = BlameForHang(flights);
  if (bugs.blame_reporting_ranks && !job.group->flights.empty())
    blame.rank = job.group->flights.begin()->first;
  failure.set_rank(blame.rank);
  // Ranks of one host that are equally suspect implicate the host.
  failure.set_worker(blame.rank >= 0 ? job.plan.ranks(blame.rank).worker()
                                     : OnlyWorkerOf(job, blame.suspects));
  failure.set_message(blame.message + "; " + failure.message());
  return failure;
}

void OnRankFlight(Job& job, const v1::RankFlight& message, Turn& turn) {
  Group& group = *job.group;
  group.flights.try_emplace(message.rank(), message);
  const bool is_draining =
      group.phase == GroupPhase::kDraining && group.failure.cause() == cause::kHang;
  if (is_draining && group.flights.size() == group.ranks.size())
    FinalizeBreakdown(job, {FinalFailure(job, turn.options.bugs), true, false}, turn);
}

void BreakGroup(Job& job, Breakdown breakdown, Turn& turn) {
  if (!job.group) return;
  const bool first = job.group->phase != GroupPhase::kDraining;
  const bool hangs = breakdown.failure.cause() == cause::kHang;
  if (first) StopGroup(job, FailureText(breakdown.failure), hangs, turn);
  if (hangs) return AwaitFlightReports(job, std::move(breakdown.failure), turn);
  if (breakdown.secondary) {
    // The other ranks noticed the failure first; a worker whose stream is closed is its cause.
    const std::string gone = DisconnectedWorker(job, turn);
    if (gone.empty()) {
      if (!first) return;
      job.group->phase = GroupPhase::kDraining;
      job.group->deadline = turn.now + CauseWait(job, breakdown.failure, turn);
      job.group->failure = std::move(breakdown.failure);
      job.group->link_suspects = std::move(breakdown.link_suspects);
      return;
    }
    breakdown.failure =
        LossOf(job, gone, "its stream closed, and the other ranks lost their connection to it");
  }
  FinalizeBreakdown(job, breakdown, turn);
}

namespace {

// Whether checkpoint.folder could not be used.
bool IsOfFolder(const Breakdown& breakdown) {
  const std::string& cause = breakdown.failure.cause();
  return cause == cause::kCheckpointFailed || cause == cause::kFolderFull ||
         (cause == cause::kStorage && !breakdown.of_other_folder);
}

v1::Failure WithAdvice(const Job& job, const Breakdown& breakdown) {
  v1::Failure failure = breakdown.failure;
  const std::string advice = IsOfFolder(breakdown) ? UnwritableFolderAdvice(job) : "";
  if (!advice.empty()) failure.set_message(failure.message() + "; " + advice);
  return failure;
}

// Only a rank finds a link that leads out of its root. Its own worker reported that, whichever
// worker it blames.
void RecordIfPathRefused(const Job& job, const v1::Failure& failure, Turn& turn) {
  const bool has_rank = failure.rank() >= 0 && failure.rank() < job.plan.ranks_size();
  if (failure.cause() != cause::kPathOutsideRoot || !has_rank) return;
  turn.effects.refused_paths.push_back(
      {job.plan.ranks(failure.rank()).worker(), job.id(), FailureText(failure)});
}

// Records the failure against the hosts or links that it blames.
void LayBlame(const Job& job, const Breakdown& breakdown, const v1::Failure& failure,
              const std::set<std::string>& link_suspects, Turn& turn) {
  HostFault fault{.weight = breakdown.of_host ? kSetAsideWeight : 1};
  if (IsOfFolder(breakdown))
    fault.folder = FolderIdPath(job.spec.checkpoint().folder(), job.record.folder_id());
  LayToHost(job, failure, std::move(fault), turn);
  if (failure.cause() == cause::kCollective) LayBrokenLink(job, failure, link_suspects, turn);
}

// Records which worker or rank was lost. Returns what the event of the recovery states: without the
// message of the failure if an event before it has it.
std::string RecordLoss(Job& job, const v1::Failure& failure, Turn& turn) {
  if (failure.cause() == cause::kWorkerLost || failure.cause() == cause::kWorkerStopped) {
    RecordEvent(job, failure.cause(), FailureTextUnder(failure.cause(), failure), turn);
    if (!failure.worker().empty()) RecordEvent(job, cause::kRankLost, RanksOn(job, failure), turn);
  } else if (failure.rank() >= 0) {
    RecordEvent(job, cause::kRankLost, FailureTextUnder(cause::kRankLost, failure), turn);
  } else {
    return FailureText(failure);
  }
  v1::Failure brief = failure;
  brief.clear_message();
  return FailureText(brief);
}

// Whether the job is to be cancelled even though its ranks can commit nothing any more.
bool EndsCancelled(const Job& job) {
  const v1::CheckpointRecord* const commit = NewestCommit(job);
  return StopsFor(StopPurpose::kCancelAnyway, job.record) &&
         (commit == nullptr || commit->step() < job.steps());
}

}  // namespace

void FinalizeBreakdown(Job& job, const Breakdown& breakdown, Turn& turn) {
  const v1::Failure failure = WithAdvice(job, breakdown);
  const std::string text = FailureText(failure);
  RecordIfPathRefused(job, failure, turn);
  FlushReports(job, turn);
  const int64_t fault_step = FaultStep(job);
  *job.record.mutable_last_failure() = failure;
  SaveRecord(job, turn);
  DropAttempts(job, "the ranks stopped: " + text, turn);
  // The ranks were asked to stop before; their devices are free once their end is confirmed.
  DropLeftImages(job, turn);
  const std::set<std::string> link_suspects = std::move(job.group->link_suspects);
  job.group.reset();
  const std::string recovery_text = RecordLoss(job, failure, turn);
  if (EndsCancelled(job)) {
    if (!breakdown.fatal) LayBlame(job, breakdown, failure, link_suspects, turn);
    EndJob(job, CancelWithoutCommit(job, "its ranks failed before it: " + text), turn);
    return;
  }
  CallOffStop(job, "its ranks failed before the checkpoint: " + text, turn);
  if (breakdown.fatal || (breakdown.of_host && (EnoughHostsFailed(job, failure.worker(), turn) ||
                                                !HasOtherHosts(job, failure.worker(), turn)))) {
    Forgive(job, turn);
    EndJob(job, {v1::JOB_STATE_FAILED, failure, text}, turn);
    return;
  }
  LayBlame(job, breakdown, failure, link_suspects, turn);
  const v1::CheckpointRecord* const commit = NewestCommit(job);
  if (commit != nullptr && commit->step() >= job.steps()) {
    job.record.set_step(commit->step());
    EndJob(job, Success(job), turn);
    return;
  }
  if (LostEveryCommit(job)) {
    v1::Failure lost = failure;
    lost.set_cause(std::string(cause::kNoRestorableCheckpoint));
    lost.set_message("every commit is quarantined; the last failure was " + text);
    EndJob(job, {v1::JOB_STATE_FAILED, lost, lost.message()}, turn);
    return;
  }
  const Charged charged =
      turn.options.bugs.charge_lost_hosts ? Charged::kAlways : CulpritOf(failure).charged;
  const int64_t spent = ChargeFault(charged, fault_step, &job.record);
  if (spent > job.spec.fault_tolerance().max_restarts()) {
    v1::Failure last = failure;
    last.set_cause(std::string(cause::kRestartBudget));
    last.set_message(fmt::format(
        "{} from its own faults without a step beyond {}; the last failure was {}",
        CountText(spent - 1, "recovery", "recoveries"), job.record.highest_step(), text));
    Forgive(job, turn);
    EndJob(job, {v1::JOB_STATE_FAILED, last, last.message()}, turn);
    return;
  }
  job.record.set_restarts(job.record.restarts() + 1);
  turn.effects.measurements.push_back(RestartMeasured{job.id()});
  if (charged == Charged::kDelayed) ++job.delayed_recoveries;
  QueueForRecovery(job, charged == Charged::kDelayed ? job.delayed_recoveries : spent, turn);
  RecordEvent(job, event::kRecovering, recovery_text, turn);
}

void FailIfNoCommitIsLeft(Job& job, Turn& turn) {
  if (!IsQueued(job) || !LostEveryCommit(job)) return;
  std::string last;
  for (const auto& [number, record] : job.checkpoints) {
    if (record.state() == v1::CHECKPOINT_STATE_QUARANTINED)
      last = fmt::format("{}: {}", record.path(), record.reason());
  }
  const v1::Failure lost = MakeFailure(cause::kNoRestorableCheckpoint,
                                       "every commit is quarantined; the last one is " + last);
  EndJob(job, {v1::JOB_STATE_FAILED, lost, lost.message()}, turn);
}

void OnRankFailed(Job& job, const v1::RankFailed& message, const std::string& worker, Turn& turn) {
  Breakdown breakdown;
  breakdown.failure = MakeFailure(StatedCause(message.cause(), cause::kRankFailed),
                                  message.message(), message.rank(), worker);
  breakdown.secondary = message.secondary();
  breakdown.of_other_folder = message.of_data();
  if (HasRankOn(job, message.blamed_worker()))
    breakdown.failure.set_worker(message.blamed_worker());
  if (message.secondary()) {
    LinkBlame links =
        BlameForLinks(job.plan, message.rank(),
                      {message.unreached_ranks().begin(), message.unreached_ranks().end()});
    breakdown.link_suspects = std::move(links.suspects);
    if (!links.message.empty())
      breakdown.failure.set_message(message.message() + "; " + Shortened(links.message));
  }
  const GroupPhase phase = job.group->phase;
  const bool starting = phase == GroupPhase::kStarting || phase == GroupPhase::kBooked;
  if (!message.bad_checkpoint_path().empty()) {
    breakdown.failure.set_cause(std::string(cause::kBadCheckpoint));
    breakdown.secondary = false;
    // A job that has a group does not wait to be restored.
    std::ignore = DoubtCommit(job, message.bad_checkpoint_path(), message.message(), worker, turn);
    // Fatal if it is not one of the job's own checkpoints but checkpoint.initial_load, which does
    // not change.
    breakdown.fatal = job.last_group.restore_attempt() == 0;
  } else if (starting && FindsImageDamaged(job, message)) {
    breakdown.failure.set_cause(std::string(cause::kBadImage));
    breakdown.failure.set_message(DamagedImageText(job, message));
    breakdown.fatal = true;
  } else if (!message.secondary()) {
    // The request of a job whose ranks have all been ready is valid, so the error is that of one
    // host, for a while. Such a job has the identity of its data, also before its first step.
    const bool first_start = starting && job.record.highest_step() == 0 && !job.data;
    breakdown.of_host = first_start && IsOfHost(message);
    breakdown.fatal =
        (first_start && !breakdown.of_host && IsOfTheJob(message.code())) || WouldRepeat(message);
  }
  BreakGroup(job, std::move(breakdown), turn);
}

void OnRankStopped(Job& job, const v1::RankStopped& message, const std::string& worker,
                   Turn& turn) {
  if (!message.crashed()) {
    // Ranks may exit by themselves once they have done what ends the job.
    const bool leaving =
        std::any_of(job.attempts.begin(), job.attempts.end(),
                    [&](const auto& entry) { return ThenStop(job, entry.second); });
    if (leaving || job.group->phase == GroupPhase::kDraining) return;
    BreakGroup(job,
               {MakeFailure(cause::kRankLost,
                            "the rank stopped although the coordinator had not asked it to",
                            message.rank(), worker),
                true, false},
               turn);
    return;
  }
  Breakdown breakdown;
  breakdown.failure = MakeFailure(StatedCause(message.cause(), cause::kRankCrashed),
                                  message.message(), message.rank(), worker);
  breakdown.failure.set_exit_code(message.exit_code());
  breakdown.failure.set_signal(message.signal());
  breakdown.failure.set_last_operation(message.last_operation());
  BreakGroup(job, std::move(breakdown), turn);
}

void OnWorkerLost(Job& job, const std::string& worker, const std::string& reason, Turn& turn) {
  if (!job.group || !HasRankOn(job, worker)) return;
  BreakGroup(job, {LossOf(job, worker, reason), false, false}, turn);
}

void OnWorkerStopped(Job& job, const std::string& worker, Turn& turn) {
  if (!job.group || !HasRankOn(job, worker)) return;
  const std::string_view stopped =
      turn.options.bugs.blame_stopped_workers ? cause::kWorkerLost : cause::kWorkerStopped;
  BreakGroup(job, {MakeFailure(stopped, "it was asked to stop", -1, worker), false, false}, turn);
}

}  // namespace troupe
