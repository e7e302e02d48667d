#include "coordinator/service/job_phases.h"

#include <algorithm>
#include <utility>

#include "coordinator/state/job_state.h"

namespace troupe {
namespace {

bool RunsSteps(v1::JobState state) {
  return state == v1::JOB_STATE_RUNNING || state == v1::JOB_STATE_CHECKPOINTING;
}

}  // namespace

std::string_view PhaseName(JobPhase phase) {
  switch (phase) {
    case JobPhase::kQueued:
      return "queued";
    case JobPhase::kStarting:
      return "starting";
    case JobPhase::kProductive:
      return "productive";
    case JobPhase::kRepeated:
      return "repeated";
    case JobPhase::kCheckpointStall:
      return "checkpoint_stall";
    case JobPhase::kRecovering:
      return "recovering";
  }
  return "";
}

JobPhases::Watched* JobPhases::Begin(const std::string& job, v1::JobState state,
                                     MonotonicTime now) {
  if (HasEnded(state)) return nullptr;
  const auto [entry, is_new] = jobs_.try_emplace(job);
  if (!is_new) return nullptr;
  entry->second.since = now;
  // Creates the series of phases that the job may never have.
  for (const JobPhase phase : kJobPhases) sink_.spent(job, phase, 0);
  return &entry->second;
}

void JobPhases::Find(const std::string& job, v1::JobState state, MonotonicTime now) {
  if (Watched* const watched = Begin(job, state, now)) watched->state = state;
  SetState(job, state, now);
}

void JobPhases::SetState(const std::string& job, v1::JobState state, MonotonicTime now) {
  const bool is_new = Begin(job, state, now) != nullptr;
  if (is_new && state == v1::JOB_STATE_STARTING) sink_.left_queue(0);  // it was placed at once
  const auto entry = jobs_.find(job);
  if (entry == jobs_.end()) return;
  Watched& watched = entry->second;
  Accrue(job, now, &watched);
  if (watched.state == v1::JOB_STATE_QUEUED && state == v1::JOB_STATE_STARTING) {
    sink_.left_queue(std::exchange(watched.queued, 0));
  }
  if (RunsSteps(watched.state) && !RunsSteps(state)) {
    const bool is_lost = state == v1::JOB_STATE_RECOVERING || state == v1::JOB_STATE_FAILED;
    sink_.spent(job, is_lost ? JobPhase::kRecovering : JobPhase::kProductive,
                std::exchange(watched.running, 0));
  }
  if (state == v1::JOB_STATE_RECOVERING) watched.is_recovering = true;
  if (RunsSteps(state)) watched.is_recovering = false;
  watched.state = state;
  if (HasEnded(state)) jobs_.erase(entry);
}

void JobPhases::AddStep(const std::string& job, bool repeated, MonotonicTime now) {
  const auto found = jobs_.find(job);
  if (found == jobs_.end()) return;
  Watched& watched = found->second;
  Accrue(job, now, &watched);
  const double seconds = std::exchange(watched.running, 0);
  const double stall = std::min(watched.stall, seconds);
  watched.stall -= stall;
  sink_.spent(job, JobPhase::kCheckpointStall, stall);
  sink_.spent(job, repeated ? JobPhase::kRepeated : JobPhase::kProductive, seconds - stall);
}

void JobPhases::AddStall(const std::string& job, double seconds) {
  const auto found = jobs_.find(job);
  if (found != jobs_.end() && seconds > 0) found->second.stall += seconds;
}

void JobPhases::Advance(MonotonicTime now) {
  for (auto& [job, watched] : jobs_) Accrue(job, now, &watched);
}

void JobPhases::Accrue(const std::string& job, MonotonicTime now, Watched* watched) {
  const double seconds = ToSeconds(now - std::exchange(watched->since, now));
  if (RunsSteps(watched->state)) {
    watched->running += seconds;
  } else if (watched->is_recovering) {
    sink_.spent(job, JobPhase::kRecovering, seconds);
  } else if (watched->state == v1::JOB_STATE_QUEUED) {
    watched->queued += seconds;
    sink_.spent(job, JobPhase::kQueued, seconds);
  } else if (watched->state == v1::JOB_STATE_STARTING) {
    sink_.spent(job, JobPhase::kStarting, seconds);
  }
}

}  // namespace troupe
