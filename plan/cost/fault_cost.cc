#include "plan/cost/fault_cost.h"

#include <fmt/format.h>

#include "plan/job/job_rules.h"

namespace troupe {
namespace {

std::string Spoken(int64_t seconds) {
  if (seconds % 3600 == 0) return fmt::format("{} h", seconds / 3600);
  if (seconds % 60 == 0) return fmt::format("{} min", seconds / 60);
  return fmt::format("{} s", seconds);
}

}  // namespace

int64_t SecondsBetweenCheckpoints(const v1::JobSpec& spec) {
  const v1::CheckpointSpec& checkpoint = spec.checkpoint();
  if (checkpoint.interval() > 0 || !WillHaveCheckpointFolder(spec)) return 0;
  return checkpoint.interval_seconds();
}

std::string FaultCost(const v1::JobSpec& spec) {
  const v1::CheckpointSpec& checkpoint = spec.checkpoint();
  if (!WillHaveCheckpointFolder(spec)) {
    return "no checkpoints (checkpoint.folder is empty): a fault costs all work since the start";
  }
  std::string period;
  if (checkpoint.interval() > spec.training().steps() && spec.training().steps() > 0) {
    return fmt::format(
        "only the final checkpoint (training ends at step {}, before the first one that is due): a "
        "fault costs all work since the start",
        spec.training().steps());
  }
  if (checkpoint.interval() > 0) {
    period = checkpoint.interval() == 1 ? "1 step" : fmt::format("{} steps", checkpoint.interval());
  } else if (checkpoint.interval_seconds() > 0) {
    period = Spoken(checkpoint.interval_seconds());
  } else {
    return fmt::format(
        "only the final checkpoint (checkpoint.interval and checkpoint.interval_seconds are 0): a "
        "fault costs all work since the start, up to {} steps",
        spec.training().steps());
  }
  return fmt::format(
      "a checkpoint every {}: a fault costs at most {} of training and what is trained while a "
      "checkpoint is written",
      period, period);
}

}  // namespace troupe
