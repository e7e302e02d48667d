#include "coordinator/job.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/check.h"
#include "coordinator/attempt_writers.h"
#include "coordinator/attempts.h"
#include "coordinator/deletion.h"
#include "coordinator/doubts.h"
#include "coordinator/event_history.h"
#include "coordinator/group.h"
#include "coordinator/growth.h"
#include "coordinator/images.h"
#include "coordinator/progress.h"
#include "coordinator/recovery.h"
#include "coordinator/running_layout.h"
#include "coordinator/settled.h"
#include "coordinator/timed_checkpoint.h"
#include "plan/violation.h"

namespace troupe {

std::string JobId(const std::string& name) {
  return name.rfind("jobs/", 0) == 0 ? name.substr(5) : name;
}

Status NoSuchJob(const char* field, const std::string& name) {
  return RefuseField(StatusCode::kNotFound, field, "is \"{}\": there is no such job", name);
}

bool HasEnded(v1::JobState state) {
  return state == v1::JOB_STATE_SUCCEEDED || state == v1::JOB_STATE_FAILED ||
         state == v1::JOB_STATE_CANCELLED;
}

bool IsQueued(const Job& job) {
  return !job.group && (job.record.state() == v1::JOB_STATE_QUEUED ||
                        job.record.state() == v1::JOB_STATE_RECOVERING);
}

std::string StateName(v1::JobState state) {
  constexpr size_t kPrefix = sizeof("JOB_STATE_") - 1;
  return v1::JobState_Name(state).substr(kPrefix);
}

void FillCheckpointFolder(const CoordinatorOptions& options, v1::JobSpec* spec) {
  if (options.checkpoint_folder.empty() || spec->checkpoint().has_folder()) return;
  spec->mutable_checkpoint()->set_folder(options.checkpoint_folder);
}

Job CreateJob(v1::JobSpec spec, v1::Plan plan, uint64_t sequence, Turn& turn) {
  Job job;
  job.record.set_id(spec.name());
  job.record.set_state(v1::JOB_STATE_QUEUED);
  job.record.set_sequence(sequence);
  job.record.set_create_wall_time_ns(turn.wall_ns);
  job.spec = std::move(spec);
  job.plan = std::move(plan);
  turn.effects.writes.PutSpec(job.id(), job.spec);
  turn.effects.writes.PutPlan(job.id(), job.plan);
  RecordEvent(job, "QUEUED", "", turn);
  turn.reschedule = true;
  return job;
}

Job RecoverJob(const v1::JobRecord& record, const v1::JobSpec& spec, const v1::Plan& plan,
               const v1::GroupRecord& group,
               const std::map<int64_t, v1::CheckpointRecord>& checkpoints, const TimeLimits& limits,
               MonotonicTime now) {
  Job job;
  job.record = record;
  job.spec = spec;
  job.plan = plan;
  job.last_group = group;
  job.durable_step = record.step();
  if (record.median_step_seconds() > 0) job.step_seconds.push_back(record.median_step_seconds());
  const bool running = record.state() == v1::JOB_STATE_RUNNING;
  // A waiting job may have been resumed on a layout other than that of its last group.
  if (running && group.ranks_size() > 0) *job.plan.mutable_ranks() = group.ranks();
  if (running) {
    Group& adopted = job.group.emplace();
    adopted.epoch = record.group_epoch();
    adopted.phase = GroupPhase::kAdopting;
    adopted.deadline = now + limits.reconnect_grace;
    // A job with known step times has warmed up.
    adopted.first_report = job.step_seconds.empty();
    adopted.ranks.resize(static_cast<size_t>(group.ranks_size()));
    // Each worker resends its ranks' later steps when it reconnects, while other workers are still
    // awaited.
    for (RankState& rank : adopted.ranks) {
      rank.reported_step = record.step();
      rank.writing_attempt.reset();
    }
    for (int rank = 0; rank < group.pids_size() && rank < group.ranks_size(); ++rank) {
      adopted.ranks[static_cast<size_t>(rank)].pid = group.pids(rank);
    }
  } else if (record.state() == v1::JOB_STATE_STARTING) {
    // It is unknown which ranks received StartRanks: they are stopped at their workers' Hello, and
    // the job starts again.
    job.record.set_state(record.recovering() || record.barren_restarts() > 0
                             ? v1::JOB_STATE_RECOVERING
                             : v1::JOB_STATE_QUEUED);
  }
  for (const auto& [number, checkpoint] : checkpoints) {
    if (checkpoint.state() != v1::CHECKPOINT_STATE_WRITING) {
      job.checkpoints[number] = checkpoint;
      const bool doubted =
          checkpoint.state() == v1::CHECKPOINT_STATE_COMMITTED && !checkpoint.doubted_by().empty();
      // The workers asked before the restart are not recorded: one is asked again once the workers
      // are back.
      if (doubted) job.doubt_readings[number].look = now + limits.reconnect_grace;
    } else if (running && checkpoint.group_epoch() == record.group_epoch()) {
      Attempt& attempt = job.attempts[number];
      attempt.record = checkpoint;
      attempt.asked = checkpoint.step() == 0;
      attempt.inherited = true;
      attempt.asked_time = now;
    } else {
      v1::CheckpointRecord& aborted = job.checkpoints[number] = checkpoint;
      aborted.set_state(v1::CHECKPOINT_STATE_ABORTED);
      aborted.set_reason("the coordinator restarted and its group epoch had ended");
    }
  }
  if (record.deleting()) job.delete_again_time = now + kDeleteAgainInterval;
  if (job.record.state() == v1::JOB_STATE_RECOVERING &&
      spec.fault_tolerance().allow_layout_change()) {
    job.shrink_time = now + limits.layout_patience;
  }
  return job;
}

void RecordEvent(Job& job, const std::string& event, const std::string& message, Turn& turn) {
  const uint64_t number = job.record.last_event() + 1;
  job.record.set_last_event(number);
  v1::JobEvent row;
  row.set_event(event);
  row.set_message(message);
  row.set_step(job.record.step());
  row.set_group_epoch(job.record.group_epoch());
  row.set_wall_time_ns(turn.wall_ns);
  row.set_state(ShownState(job));
  const CountedEvent counted = CountEvent(event, number, &job.record);
  row.set_count(counted.count);
  turn.effects.writes.PutEvent(job.id(), number, row);
  if (counted.dropped) turn.effects.writes.DeleteEvent(job.id(), *counted.dropped);
  SaveRecord(job, turn);
  JobUpdate update{job.id(), {}};
  *update.update.mutable_event() = std::move(row);
  turn.effects.updates.push_back(std::move(update));
}

void EndJob(Job& job, v1::JobState state, const v1::Failure* failure, const std::string& message,
            Turn& turn) {
  FlushReports(job, turn);
  DropAttempts(job, "the job ended", turn);
  SendDeletions(job, turn);
  if (job.group) {
    v1::CoordinatorMessage stop;
    stop.mutable_stop_ranks()->set_job(job.id());
    stop.mutable_stop_ranks()->set_group_epoch(job.group->epoch);
    stop.mutable_stop_ranks()->set_reason(StateName(state));
    stop.mutable_stop_ranks()->set_finished(state == v1::JOB_STATE_SUCCEEDED);
    SendToGroup(job, stop, turn);
    DropLeftImages(job, turn);
    job.group.reset();
  }
  job.record.set_state(state);
  job.record.set_end_wall_time_ns(turn.wall_ns);
  job.record.clear_failure();
  if (failure != nullptr) *job.record.mutable_failure() = *failure;
  job.waiting_for.clear();
  job.place_not_before.reset();
  job.choose_time.reset();
  job.shrink_time.reset();
  job.may_shrink = false;
  job.grow_time.reset();
  job.record.set_stop_attempt(0);
  job.record.set_grows(false);
  job.record.set_recovering(false);
  RecordEvent(job, StateName(state), message, turn);
  JobUpdate end{job.id(), {}};
  end.update.set_end(state);
  turn.effects.updates.push_back(std::move(end));
  for (const CallId call : job.cancel_callers) ReplyWithJob(job, call, turn);
  job.cancel_callers.clear();
  turn.reschedule = true;
}

void CancelJob(Job& job, CallId call, bool checkpoint, Turn& turn) {
  if (job.record.state() == v1::JOB_STATE_CANCELLED) {
    ReplyWithJob(job, call, turn);
    return;
  }
  if (HasEnded(job)) {
    ReplyWithError(
        call,
        FailedPrecondition("job {} has ended: it is {}", job.id(), StateName(job.record.state())),
        turn);
    return;
  }
  if (!checkpoint) {
    job.cancel_callers.push_back(call);
    EndJob(job, v1::JOB_STATE_CANCELLED, nullptr, "cancelled", turn);
    return;
  }
  if (!job.has_folder()) {
    ReplyWithError(
        call,
        FailedPrecondition("job {} cannot checkpoint: its checkpoint.folder is empty", job.id()),
        turn);
    return;
  }
  if (job.record.state() == v1::JOB_STATE_QUEUED) {
    job.cancel_callers.push_back(call);
    EndJob(job, v1::JOB_STATE_CANCELLED, nullptr, "cancelled; nothing ran that could be saved",
           turn);
    return;
  }
  const bool trains = job.group && (job.group->phase == GroupPhase::kRunning ||
                                    job.group->phase == GroupPhase::kAdopting);
  if (!trains) {
    ReplyWithError(call,
                   FailedPrecondition("job {} cannot checkpoint while it is {}: cancel it without, "
                                      "or once it is RUNNING",
                                      job.id(), StateName(ShownState(job))),
                   turn);
    return;
  }
  job.cancel_callers.push_back(call);
  // The ranks of a job that is to grow are stopping already; it is cancelled where they stop.
  job.record.set_grows(false);
  if (job.record.stop_attempt() == 0) {
    job.record.set_stop_attempt(job.record.last_attempt() + 1);
    RequestCheckpoint(job, turn);
  } else {
    SaveRecord(job, turn);
  }
}

const v1::CheckpointRecord* NewestCommit(const Job& job) {
  const v1::CheckpointRecord* newest = nullptr;
  for (const auto& [attempt, record] : job.checkpoints) {
    if (record.state() != v1::CHECKPOINT_STATE_COMMITTED) continue;
    if (newest == nullptr || record.step() >= newest->step()) newest = &record;
  }
  return newest;
}

bool HasQuarantined(const Job& job) {
  return std::any_of(job.checkpoints.begin(), job.checkpoints.end(), [](const auto& entry) {
    return entry.second.state() == v1::CHECKPOINT_STATE_QUARANTINED;
  });
}

void SendToGroup(const Job& job, const v1::CoordinatorMessage& message, Turn& turn) {
  std::set<std::string> workers;
  for (const v1::RankPlacement& placement : job.plan.ranks()) workers.insert(placement.worker());
  for (const std::string& worker : workers) SendToWorker(worker, message, turn);
}

void ReplyWithJob(const Job& job, CallId call, Turn& turn) {
  turn.effects.replies.push_back({call, OkStatus(), DescribeJob(job, true)});
}

void ReplyWithError(CallId call, Status status, Turn& turn) {
  turn.effects.replies.push_back({call, std::move(status), std::monostate()});
}

namespace {

void OnRunningTime(Job& job, Turn& turn) {
  if (job.group->save_again_time && turn.now >= *job.group->save_again_time) SaveAgain(job, turn);
  if (!job.group) return;
  if (job.group->image_taking && turn.now >= job.group->image_taking->deadline) {
    if (!job.group->hung_ranks.empty()) return BreakHungSave(job, turn);
    GiveUpImages(job, "not every rank has answered", turn);
  }
  std::vector<int64_t> late;
  const bool open = job.group->save_again_time || job.group->image_taking || HoldsUpRanks(job);
  for (const auto& [number, attempt] : job.attempts) {
    const auto deadline = AttemptDeadline(job, attempt, turn.limits());
    if (deadline && turn.now >= *deadline) late.push_back(number);
  }
  // Aborting one attempt may also abort others.
  for (const int64_t number : late) {
    if (job.attempts.contains(number)) AbortLateAttempt(job, number, turn);
  }
  if (!job.group || job.group->phase != GroupPhase::kRunning) return;
  if (const auto due = TimedCheckpointDue(job); due && turn.now >= *due)
    RequestCheckpoint(job, turn);
  const Duration limit = HangLimitOf(job, turn.limits());
  if (!open && turn.now >= job.group->last_progress + limit) {
    const auto text = fmt::format("no rank reported a step for {:.1f} s", ToSeconds(limit));
    return BreakGroup(job, {MakeFailure("HANG", text), false, false}, turn);
  }
  RenewTicket(job, turn);
}

// The workers whose ranks have not been confirmed since the coordinator restarted.
std::string MissingWorkers(const Job& job) {
  std::set<std::string> missing;
  for (size_t rank = 0; rank < job.group->ranks.size(); ++rank) {
    if (!job.group->ranks[rank].held)
      missing.insert(job.plan.ranks(static_cast<int>(rank)).worker());
  }
  return fmt::format("{}", fmt::join(missing, ", "));
}

// Names the awaited ranks: those without an address, which a rank states once it has loaded, or,
// once all have one, those that are not ready. The failure names their worker if they share one.
v1::Failure LateStart(const Job& job) {
  const bool starts = job.group->phase == GroupPhase::kStarting;
  std::set<std::string> workers;
  std::vector<int> late;
  for (size_t rank = 0; rank < job.group->ranks.size(); ++rank) {
    const RankState& state = job.group->ranks[rank];
    if (starts ? !state.address.empty() : state.ready) continue;
    late.push_back(static_cast<int>(rank));
    workers.insert(job.plan.ranks(late.back()).worker());
  }
  const std::string text = fmt::format(
      "not every rank was ready within {:.0f} s: rank {} {}", ToSeconds(job.group->start_limit),
      fmt::join(late, ", "), starts ? "had not loaded" : "had loaded and was not ready");
  return MakeFailure("START_TIMEOUT", text, late.size() == 1 ? late.front() : -1,
                     workers.size() == 1 ? *workers.begin() : std::string());
}

}  // namespace

void OnJobTime(Job& job, Turn& turn) {
  if (!job.unflushed.empty() && turn.now >= job.flush_time) FlushReports(job, turn);
  LookAfterDoubts(job, turn);
  if (job.delete_again_time && turn.now >= *job.delete_again_time) {
    job.delete_again_time = turn.now + kDeleteAgainInterval;
    SendDeletions(job, turn);
  }
  if (job.place_not_before && turn.now >= *job.place_not_before) {
    job.place_not_before.reset();
    turn.reschedule = true;
  }
  if (job.choose_time && turn.now >= *job.choose_time) {
    job.choose_time.reset();
    turn.reschedule = true;
  }
  if (job.shrink_time && turn.now >= *job.shrink_time) {
    job.shrink_time.reset();
    job.may_shrink = true;
    turn.reschedule = true;
  }
  if (!job.group) return;
  if (job.group->phase == GroupPhase::kRunning) {
    OnRunningTime(job, turn);
    BeginGrowthIfDue(job, turn);
    return;
  }
  if (turn.now < job.group->deadline) return;
  switch (job.group->phase) {
    case GroupPhase::kAdopting:
      BreakGroup(job,
                 {MakeFailure("WORKER_LOST",
                              fmt::format("did not come back after the coordinator's restart: {}",
                                          MissingWorkers(job))),
                  false, false},
                 turn);
      return;
    case GroupPhase::kStarting:
    case GroupPhase::kBooked:
      BreakGroup(job, {LateStart(job), false, false}, turn);
      return;
    case GroupPhase::kSettling:
      SettleBreakdown(job, {SettledFailure(job), true, false}, turn);
      return;
    case GroupPhase::kRunning:
      return;
  }
}

std::optional<MonotonicTime> NextJobDeadline(const Job& job, const CoordinatorOptions& options) {
  std::optional<MonotonicTime> next;
  const auto at = [&next](MonotonicTime time) {
    if (!next || time < *next) next = time;
  };
  if (!job.unflushed.empty()) at(job.flush_time);
  if (job.place_not_before) at(*job.place_not_before);
  if (job.choose_time) at(*job.choose_time);
  if (job.delete_again_time) at(*job.delete_again_time);
  if (job.shrink_time) at(*job.shrink_time);
  if (const auto due = NextDoubtDeadline(job)) at(*due);
  if (!job.group) return next;
  if (job.group->phase != GroupPhase::kRunning) {
    at(job.group->deadline);
    return next;
  }
  if (job.grow_time) at(*job.grow_time);
  if (job.group->save_again_time) at(*job.group->save_again_time);
  if (const auto due = TimedCheckpointDue(job)) at(*due);
  if (job.group->image_taking) at(job.group->image_taking->deadline);
  const bool open = job.group->save_again_time || job.group->image_taking || HoldsUpRanks(job);
  for (const auto& [number, attempt] : job.attempts) {
    if (const auto deadline = AttemptDeadline(job, attempt, options.limits)) at(*deadline);
  }
  if (!open) at(job.group->last_progress + HangLimitOf(job, options.limits));
  at(TicketRenewalTime(*job.group, options.limits));
  return next;
}

v1::JobState ShownState(const Job& job) {
  if (job.group && job.group->phase == GroupPhase::kSettling) return v1::JOB_STATE_RECOVERING;
  if (job.record.state() != v1::JOB_STATE_RUNNING) return job.record.state();
  const bool open = std::any_of(job.attempts.begin(), job.attempts.end(), [](const auto& entry) {
    return entry.second.begun || entry.second.asked;
  });
  return open ? v1::JOB_STATE_CHECKPOINTING : v1::JOB_STATE_RUNNING;
}

v1::Job DescribeJob(const Job& job, bool full) {
  v1::Job shown;
  shown.set_name("jobs/" + job.id());
  shown.set_state(ShownState(job));
  shown.set_step(job.record.step());
  shown.set_steps(job.steps());
  *shown.mutable_layout() = job.plan.mesh();
  for (int rank = 0; rank < job.last_group.ranks_size(); ++rank) {
    const v1::RankPlacement& placement = job.last_group.ranks(rank);
    v1::RankStatus* const status = shown.add_ranks();
    status->set_rank(placement.rank());
    status->set_worker(placement.worker());
    status->set_device(placement.device());
    if (job.group) {
      const RankState& state = job.group->ranks[static_cast<size_t>(rank)];
      status->set_pid(state.pid);
      *status->mutable_cores() = state.cores;
    } else if (rank < job.last_group.pids_size()) {
      status->set_pid(job.last_group.pids(rank));
    }
    *status->mutable_coordinates() = placement.coordinates();
  }
  shown.set_group_epoch(job.record.group_epoch());
  shown.set_restarts(job.record.restarts());
  for (v1::CheckpointRecord& record : ListedCheckpoints(job))
    *shown.add_checkpoints() = std::move(record);
  if (job.record.has_failure()) *shown.mutable_failure() = job.record.failure();
  if (job.record.has_last_failure()) *shown.mutable_last_failure() = job.record.last_failure();
  shown.set_waiting_for(job.waiting_for);
  shown.set_create_wall_time_ns(job.record.create_wall_time_ns());
  *shown.mutable_submitted_layout() = SubmittedPlan(job).mesh();
  if (full) {
    *shown.mutable_spec() = job.spec;
    *shown.mutable_plan() = job.plan;
  }
  return shown;
}

std::vector<v1::CheckpointRecord> ListedCheckpoints(const Job& job) {
  std::vector<v1::CheckpointRecord> listed;
  for (const auto& [attempt, record] : job.checkpoints) {
    if (record.state() == v1::CHECKPOINT_STATE_COMMITTED ||
        record.state() == v1::CHECKPOINT_STATE_QUARANTINED) {
      listed.push_back(record);
    }
  }
  std::stable_sort(listed.begin(), listed.end(),
                   [](const auto& a, const auto& b) { return a.step() < b.step(); });
  return listed;
}

}  // namespace troupe
