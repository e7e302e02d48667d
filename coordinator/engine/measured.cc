#include "coordinator/engine/measured.h"

#include <algorithm>

namespace troupe {

JobFigures FiguresOf(const Job& job) {
  JobFigures figures{.job = job.id(), .state = ShownState(job), .step = job.record.step()};
  if (const v1::CheckpointRecord* const commit = NewestCommit(job)) {
    figures.newest_commit = {.step = commit->step(), .wall_time_ns = commit->commit_wall_time_ns()};
  }
  return figures;
}

RecoveredJob RecoveredFiguresOf(const Job& job) {
  return {.figures = FiguresOf(job),
          .restarts = job.record.restarts(),
          .quarantined = std::count_if(job.checkpoints.begin(), job.checkpoints.end(),
                                       [](const auto& entry) {
                                         return entry.second.state() ==
                                                v1::CHECKPOINT_STATE_QUARANTINED;
                                       }),
          .skipped = job.record.skipped_checkpoints()};
}

std::vector<WorkerFigures> FiguresOf(const Fleet& fleet) {
  std::vector<WorkerFigures> figures;
  figures.reserve(fleet.workers.size());
  for (const auto& [name, worker] : fleet.workers) {
    figures.push_back(
        {.worker = name, .is_connected = worker.session != 0, .memory_bytes = worker.memory_bytes});
  }
  return figures;
}

}  // namespace troupe
