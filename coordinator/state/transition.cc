#include "coordinator/state/transition.h"

#include <fmt/format.h>

namespace troupe {

bool IsFinished(const Job& job) {
  if (job.record.step() < job.steps()) return false;
  if (!job.has_folder()) return true;
  const v1::CheckpointRecord* const commit = NewestCommit(job);
  return commit != nullptr && commit->step() >= job.steps();
}

JobEnd Success(const Job& job) {
  return {v1::JOB_STATE_SUCCEEDED, std::nullopt, fmt::format("{} steps", job.steps())};
}

}  // namespace troupe
