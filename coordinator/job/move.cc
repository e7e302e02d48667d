#include "coordinator/job/move.h"

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "coordinator/job/attempts.h"
#include "coordinator/job/job_pace.h"
#include "coordinator/job/job_record.h"
#include "coordinator/state/event_kind.h"

namespace troupe {
namespace {

constexpr int kStepsBeforeStop = 2;

// The workers with ranks of the job that drain.
std::map<std::string, const Worker*> DrainingWorkersOf(const Job& job, const Fleet& fleet) {
  std::map<std::string, const Worker*> draining;
  for (const v1::RankPlacement& placement : job.plan.ranks()) {
    const Worker* const worker = FindWorker(placement.worker(), fleet);
    if (worker != nullptr && IsDraining(*worker, fleet)) draining[worker->name] = worker;
  }
  return draining;
}

std::string ReasonOf(const Worker& worker, const Fleet& fleet) {
  if (worker.drain) return worker.drain->reason;
  const std::string& reason = fleet.drains.at(worker.name).reason();
  return reason.empty() ? "by an operator" : fmt::format("by an operator: {}", reason);
}

// Time until the group has stopped after a commit. A commit counts as long as the newest one took,
// and nothing before the first: an attempt that is not committed in time costs no step.
Duration TimeToStop(const Job& job) {
  const v1::CheckpointRecord* const commit = NewestCommit(job);
  const double commit_seconds = commit != nullptr ? commit->duration_seconds() : 0;
  return FromSeconds(kStepsBeforeStop * MedianStepSeconds(job) + commit_seconds);
}

// Whether the ranks can save a step and stop. A job that continues from images must commit first.
bool CanStop(const Job& job) {
  return job.has_folder() && job.images.step() == 0 && job.record.step() < job.steps();
}

}  // namespace

std::string MoveText(const Job& job, const Fleet& fleet) {
  std::vector<std::string> parts;
  for (const auto& [name, worker] : DrainingWorkersOf(job, fleet))
    parts.push_back(fmt::format("{}, which is draining ({})", name, ReasonOf(*worker, fleet)));
  if (parts.empty()) return "leaves workers that were draining";
  return fmt::format("leaves {}", fmt::join(parts, ", and "));
}

Transition ConsiderMove(Job& job, Turn& turn) {
  if (!job.group || job.record.stop_attempt() != 0) return {};
  const std::map<std::string, const Worker*> draining = DrainingWorkersOf(job, turn.fleet);
  if (draining.empty()) return {};
  switch (job.group->phase) {
    case GroupPhase::kStarting:
    case GroupPhase::kBooked:
      return GroupMoves{};
    case GroupPhase::kAdopting:
    case GroupPhase::kDraining:
      return {};
    case GroupPhase::kRunning:
      break;
  }
  if (!CanStop(job)) return {};
  // Where nothing presses, the job does not stop while its folder may not be writable.
  const bool presses = std::any_of(draining.begin(), draining.end(), [](const auto& entry) {
    return entry.second->drain.has_value();
  });
  if (!presses && !job.failed_writes.counts.empty()) return {};
  const MonotonicTime stopped = turn.now + TimeToStop(job);
  const bool is_late = std::any_of(draining.begin(), draining.end(), [&](const auto& entry) {
    return entry.second->drain && stopped > entry.second->drain->end;
  });
  if (is_late) return {};
  job.record.set_stop_attempt(job.record.last_attempt() + 1);
  job.record.set_leaves_workers(true);
  job.record.set_move_reason(MoveText(job, turn.fleet));
  RecordEvent(job, event::kMoving,
              fmt::format("{}; its {} ranks commit a checkpoint and stop", job.record.move_reason(),
                          job.plan.ranks_size()),
              turn);
  RequestCheckpoint(job, turn);
  return {};
}

}  // namespace troupe
