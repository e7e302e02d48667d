#include "coordinator/recovery.h"

#include <algorithm>
#include <set>
#include <utility>

#include "coordinator/attempts.h"
#include "coordinator/progress.h"
#include "coordinator/settled.h"

namespace troupe {
namespace {

constexpr int kMaxDoublings = 16;

void StopGroup(const Job& job, const std::string& reason, Turn& turn) {
  v1::CoordinatorMessage message;
  v1::StopRanks* const stop = message.mutable_stop_ranks();
  stop->set_job(job.id());
  stop->set_group_epoch(job.group->epoch);
  stop->set_reason(reason);
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

// Errors of what the job asks for, met while starting: another try would meet them again.
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

// Errors that the same step meets again, whatever is placed anew.
bool WouldRepeat(const v1::RankFailed& message) {
  if (message.cause() == "NONFINITE") return true;
  const auto code = static_cast<StatusCode>(message.code());
  return message.cause() == "DATA" &&
         (code == StatusCode::kInvalidArgument || code == StatusCode::kOutOfRange ||
          code == StatusCode::kDataLoss);
}

// Commits there were, and every one of them turned out bad: from the seed the job would only seem
// to go on.
bool LostEveryCommit(const Job& job) { return NewestCommit(job) == nullptr && HasQuarantined(job); }

std::string RanksOn(const Job& job, const std::string& worker) {
  std::set<int32_t> ranks;
  for (const v1::RankPlacement& placement : job.plan.ranks()) {
    if (placement.worker() == worker) ranks.insert(placement.rank());
  }
  return fmt::format("{}", fmt::join(ranks, ", "));
}

void QueueForRecovery(Job& job, Turn& turn) {
  job.record.set_state(v1::JOB_STATE_RECOVERING);
  const int64_t barren = job.record.barren_restarts();
  if (barren >= 2) {
    const int doublings = static_cast<int>(std::min<int64_t>(barren - 2, kMaxDoublings));
    job.place_not_before =
        turn.now + std::min(turn.limits().restart_backoff * (int64_t{1} << doublings),
                            turn.limits().restart_backoff_limit);
  }
  if (job.spec.fault_tolerance().allow_layout_change()) {
    job.shrink_time = turn.now + turn.limits().layout_patience;
  }
  turn.reschedule = true;
}

}  // namespace

v1::Failure MakeFailure(const std::string& cause, const std::string& message, int32_t rank,
                        const std::string& worker) {
  v1::Failure failure;
  failure.set_cause(cause);
  failure.set_message(message);
  failure.set_rank(rank);
  failure.set_worker(worker);
  return failure;
}

std::string FailureText(const v1::Failure& failure) {
  std::string text = failure.cause();
  if (failure.rank() >= 0) text += fmt::format(": rank {}", failure.rank());
  if (!failure.worker().empty()) text += fmt::format(" on {}", failure.worker());
  if (failure.signal() != 0) text += fmt::format(", signal {}", failure.signal());
  if (failure.exit_code() != 0) text += fmt::format(", exit code {}", failure.exit_code());
  if (!failure.last_operation().empty()) text += fmt::format(", in {}", failure.last_operation());
  if (!failure.message().empty()) text += ": " + failure.message();
  return text;
}

void BreakGroup(Job& job, Breakdown breakdown, Turn& turn) {
  if (!job.group) return;
  const bool first = job.group->phase != GroupPhase::kSettling;
  if (first) StopGroup(job, FailureText(breakdown.failure), turn);
  if (breakdown.secondary) {
    // The others noticed first. A worker whose stream is closed is what they noticed.
    const std::string gone = DisconnectedWorker(job, turn);
    if (gone.empty()) {
      if (!first) return;
      job.group->phase = GroupPhase::kSettling;
      job.group->deadline = turn.now + turn.limits().settle;
      job.group->failure = std::move(breakdown.failure);
      return;
    }
    breakdown.failure =
        MakeFailure("WORKER_LOST", "its stream closed and the other ranks lost it", -1, gone);
  }
  SettleBreakdown(job, breakdown, turn);
}

void SettleBreakdown(Job& job, const Breakdown& breakdown, Turn& turn) {
  const v1::Failure& failure = breakdown.failure;
  const std::string text = FailureText(failure);
  FlushReports(job, turn);
  DropAttempts(job, "its group epoch ended: " + text, turn);
  // The ranks were told to stop before; their devices are free again once their death is confirmed.
  job.group.reset();
  if (failure.cause() == "WORKER_LOST") {
    RecordEvent(job, "WORKER_LOST", text, turn);
    if (!failure.worker().empty()) {
      RecordEvent(job, "RANK_LOST",
                  fmt::format("{} on {}", RanksOn(job, failure.worker()), failure.worker()), turn);
    }
  } else if (failure.rank() >= 0) {
    RecordEvent(job, "RANK_LOST", text, turn);
  }
  CallOffCancel(job, "its ranks failed before the checkpoint: " + text, turn);
  if (breakdown.fatal) {
    EndJob(job, v1::JOB_STATE_FAILED, &failure, text, turn);
    return;
  }
  const v1::CheckpointRecord* const commit = NewestCommit(job);
  if (commit != nullptr && commit->step() >= job.steps()) {
    job.record.set_step(commit->step());
    EndJob(job, v1::JOB_STATE_SUCCEEDED, nullptr, fmt::format("{} steps", job.steps()), turn);
    return;
  }
  if (LostEveryCommit(job)) {
    v1::Failure lost = failure;
    lost.set_cause("NO_RESTORABLE_CHECKPOINT");
    lost.set_message("every commit is quarantined; the last failure was " + text);
    EndJob(job, v1::JOB_STATE_FAILED, &lost, lost.message(), turn);
    return;
  }
  const int64_t budget = job.spec.fault_tolerance().max_restarts();
  if (job.record.barren_restarts() >= budget) {
    v1::Failure spent = failure;
    spent.set_cause("RESTART_BUDGET");
    spent.set_message(fmt::format("{} recoveries without a step beyond {}; the last failure was {}",
                                  job.record.barren_restarts(), job.record.highest_step(), text));
    EndJob(job, v1::JOB_STATE_FAILED, &spent, spent.message(), turn);
    return;
  }
  job.record.set_barren_restarts(job.record.barren_restarts() + 1);
  job.record.set_restarts(job.record.restarts() + 1);
  turn.effects.measurements.push_back(RestartMeasured{job.id()});
  QueueForRecovery(job, turn);
  RecordEvent(job, "RECOVERING", text, turn);
}

void OnRankFailed(Job& job, const v1::RankFailed& message, const std::string& worker, Turn& turn) {
  Breakdown breakdown;
  breakdown.failure = MakeFailure(message.cause().empty() ? "RANK_FAILED" : message.cause(),
                                  message.message(), message.rank(), worker);
  breakdown.secondary = message.secondary();
  const GroupPhase phase = job.group->phase;
  const bool starting = phase == GroupPhase::kStarting || phase == GroupPhase::kBooked;
  if (!message.bad_checkpoint_path().empty()) {
    breakdown.failure.set_cause("BAD_CHECKPOINT");
    breakdown.secondary = false;
    Quarantine(job, message.bad_checkpoint_path(), message.message(), turn);
    // Not one of its own: checkpoint.initial_load, which stays what it is.
    breakdown.fatal = job.last_group.restore_attempt() == 0;
  } else if (!message.secondary()) {
    // What a job asks for cannot be wrong once it has trained: that is of one host, for a while.
    const bool first_start = starting && job.record.highest_step() == 0;
    breakdown.fatal = (first_start && IsOfTheJob(message.code())) || WouldRepeat(message);
  }
  BreakGroup(job, std::move(breakdown), turn);
}

void OnRankStopped(Job& job, const v1::RankStopped& message, const std::string& worker,
                   Turn& turn) {
  if (!message.crashed()) {
    // Ranks may leave by themselves once they have done what ends the job.
    const bool leaving =
        std::any_of(job.attempts.begin(), job.attempts.end(),
                    [&](const auto& entry) { return ThenStop(job, entry.second); });
    if (leaving || job.group->phase == GroupPhase::kSettling) return;
    BreakGroup(job,
               {MakeFailure("RANK_LOST", "it stopped without being told", message.rank(), worker),
                true, false},
               turn);
    return;
  }
  Breakdown breakdown;
  breakdown.failure = MakeFailure(message.cause().empty() ? "RANK_CRASHED" : message.cause(),
                                  message.message(), message.rank(), worker);
  breakdown.failure.set_exit_code(message.exit_code());
  breakdown.failure.set_signal(message.signal());
  breakdown.failure.set_last_operation(message.last_operation());
  BreakGroup(job, std::move(breakdown), turn);
}

void OnWorkerLost(Job& job, const std::string& worker, const std::string& reason, Turn& turn) {
  if (!job.group) return;
  const bool concerned =
      std::any_of(job.plan.ranks().begin(), job.plan.ranks().end(),
                  [&](const v1::RankPlacement& placement) { return placement.worker() == worker; });
  if (!concerned) return;
  BreakGroup(job, {MakeFailure("WORKER_LOST", reason, -1, worker), false, false}, turn);
}

}  // namespace troupe
