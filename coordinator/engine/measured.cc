#include "coordinator/engine/measured.h"

#include <algorithm>
#include <utility>

#include "plan/cost/fault_cost.h"
#include "plan/text/precision_words.h"

namespace troupe {
namespace {

std::string LayoutText(const v1::MeshDegrees& mesh) {
  std::string text;
  for (const auto& [axis, degree] :
       {std::pair("pipe", mesh.pipe()), std::pair("data_replicate", mesh.data_replicate()),
        std::pair("data_shard", mesh.data_shard()), std::pair("context", mesh.context()),
        std::pair("expert", mesh.expert()), std::pair("tensor", mesh.tensor())}) {
    if (degree > 1) text += fmt::format("{}{}={}", text.empty() ? "" : ",", axis, degree);
  }
  return text.empty() ? "1" : text;
}

}  // namespace

void DurationCounts::Add(double seconds) {
  const auto bucket = std::lower_bound(kBounds.begin(), kBounds.end(), seconds);
  ++counts[static_cast<size_t>(bucket - kBounds.begin())];
  sum += seconds;
}

JobFigures FiguresOf(const Job& job) {
  JobFigures figures{.job = job.id(), .state = ShownState(job), .step = job.record.step()};
  if (HasEnded(job)) figures.ended_wall_ns = job.record.end_wall_time_ns();
  figures.shape = {LayoutText(job.plan.mesh()), IntendedPrecision(job.spec),
                   job.plan.schedule().name()};
  figures.ranks = job.plan.ranks_size();
  figures.checkpoint_steps = job.spec.checkpoint().interval();
  if (figures.checkpoint_steps == 0) {
    figures.checkpoint_seconds = SecondsBetweenCheckpoints(job.spec);
  }
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

ControlFigures ControlFiguresOf(const CoordinatorState& state) {
  ControlFigures figures{.leader_epoch = state.leader_epoch,
                         .sessions = static_cast<int64_t>(state.fleet.sessions.size())};
  for (const auto& [name, worker] : state.fleet.workers) {
    for (int index = 0; index < worker.hello.devices_size(); ++index) {
      const v1::Device& device = worker.hello.devices(index);
      if (state.fleet.leases.contains({name, device.index()})) {
        ++figures.devices_leased;
      } else if (!device.condemned().empty()) {
        ++figures.devices_condemned;
      } else if (worker.session != 0 && IsDraining(worker, state.fleet)) {
        ++figures.devices_draining;
      } else if (worker.session != 0) {
        ++figures.devices_free;
      }
    }
  }
  for (const auto& [id, job] : state.jobs) {
    if (IsQueued(job)) figures.devices_wanted += job.plan.ranks_size();
  }
  return figures;
}

}  // namespace troupe
