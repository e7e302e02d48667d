#include "coordinator/job/move.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/text/count_text.h"
#include "coordinator/job/attempts.h"
#include "coordinator/job/job_pace.h"
#include "coordinator/job/job_record.h"
#include "coordinator/state/event_kind.h"
#include "coordinator/state/stop.h"

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

// For example "worker-1, which is draining (SIGTERM)"; empty if none is.
std::string DrainingText(const Job& job, const Fleet& fleet) {
  std::vector<std::string> parts;
  for (const auto& [name, worker] : DrainingWorkersOf(job, fleet))
    parts.push_back(fmt::format("{}, which is draining ({})", name, ReasonOf(*worker, fleet)));
  return fmt::format("{}", fmt::join(parts, ", and "));
}

// Records why the job does not move, once for each reason.
void RecordStay(Job& job, const std::string& why, Turn& turn) {
  std::string text = fmt::format("stays on {}: {}", DrainingText(job, turn.fleet), why);
  if (job.group->stay == text) return;
  RecordEvent(job, event::kNotMoving, text, turn);
  job.group->stay = std::move(text);
}

}  // namespace

std::string WhyStays(const Job& job, const Fleet& fleet) {
  if (!job.group || job.group->phase != GroupPhase::kRunning) return "";
  const std::map<std::string, const Worker*> draining = DrainingWorkersOf(job, fleet);
  if (draining.empty()) return "";
  if (!job.has_folder())
    return "it has no checkpoint.folder, so it trains there until it is cancelled or the worker "
           "ends";
  if (job.record.step() >= job.steps()) return "it saves its last step";
  if (job.images.step() != 0) return "it must commit the state of its ranks' images first";
  // Where nothing presses, the job does not stop while its folder may not be writable.
  const bool presses = std::any_of(draining.begin(), draining.end(), [](const auto& entry) {
    return entry.second->drain.has_value();
  });
  if (!presses && job.failed_writes.any())
    return "its last checkpoint failed; it moves after a commit";
  if (presses && job.group->lacks_time_to_move)
    return "two steps and a commit do not fit into the time that is left";
  return "";
}

std::string MoveText(const Job& job, const Fleet& fleet) {
  const std::string workers = DrainingText(job, fleet);
  return "leaves " + (workers.empty() ? "workers that were draining" : workers);
}

Transition ConsiderMove(Job& job, Turn& turn) {
  if (!job.group || StopAttempt(job.record) != 0) return {};
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
  const MonotonicTime stopped = turn.now + TimeToStop(job);
  job.group->lacks_time_to_move = std::any_of(
      draining.begin(), draining.end(),
      [&](const auto& entry) { return entry.second->drain && stopped > entry.second->drain->end; });
  if (const std::string why = WhyStays(job, turn.fleet); !why.empty()) {
    RecordStay(job, why, turn);
    return {};
  }
  StopAfterNextAttempt(StopPurpose::kMove, &job.record);
  job.record.set_move_reason(MoveText(job, turn.fleet));
  RecordEvent(job, event::kMoving,
              fmt::format("{}; its {}", job.record.move_reason(),
                          CountText(job.plan.ranks_size(), "rank commits a checkpoint and stops",
                                    "ranks commit a checkpoint and stop")),
              turn);
  RequestCheckpoint(job, turn);
  return {};
}

}  // namespace troupe
