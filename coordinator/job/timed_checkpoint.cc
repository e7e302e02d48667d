#include "coordinator/job/timed_checkpoint.h"

#include <algorithm>

#include "coordinator/job/job_record.h"
#include "coordinator/state/job_state.h"
#include "coordinator/state/stop.h"
#include "plan/cost/fault_cost.h"

namespace troupe {
namespace {

constexpr Duration kTryAgainMax = std::chrono::seconds(60);

Duration IntervalOf(const Job& job) {
  if (!job.has_folder()) return Duration::zero();
  return std::chrono::seconds(SecondsBetweenCheckpoints(job.spec));
}

}  // namespace

void CountOnCheckpointTime(Job& job, Turn& turn) {
  job.checkpoint_due.reset();
  const Duration interval = IntervalOf(job);
  if (interval == Duration::zero()) return;
  if (job.record.unsaved_since_wall_time_ns() == 0) {
    job.record.set_unsaved_since_wall_time_ns(turn.wall_ns);
    SaveRecord(job, turn);
  }
  // A wall clock that was set back or far ahead meanwhile shifts the due time by at most one
  // interval.
  const Duration passed(turn.wall_ns - job.record.unsaved_since_wall_time_ns());
  job.checkpoint_due = turn.now + interval - std::clamp(passed, Duration::zero(), interval);
}

void CountFromCheckpoint(Job& job, MonotonicTime taken, Turn& turn) {
  const Duration since = turn.now - taken;
  job.record.set_unsaved_since_wall_time_ns(turn.wall_ns - since.count());
  SaveRecord(job, turn);
  if (const Duration interval = IntervalOf(job); interval > Duration::zero())
    job.checkpoint_due = taken + interval;
}

void PostponeTimedCheckpoint(Job& job, Turn& turn) {
  if (!job.checkpoint_due) return;
  job.checkpoint_due =
      std::max(*job.checkpoint_due, turn.now + std::min(IntervalOf(job), kTryAgainMax));
}

std::optional<MonotonicTime> TimedCheckpointDue(const Job& job) {
  if (!job.checkpoint_due || !job.group || job.group->phase != GroupPhase::kRunning) return {};
  const bool ends = job.record.step() >= job.steps() || StopAttempt(job.record) != 0;
  const bool open = std::any_of(job.attempts.begin(), job.attempts.end(), [](const auto& entry) {
    return entry.second.asked || entry.second.begun;
  });
  if (ends || open || job.group->save_again_time) return {};
  return job.checkpoint_due;
}

}  // namespace troupe
