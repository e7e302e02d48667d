#include "coordinator/state/transition.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text/count_text.h"

namespace troupe {

bool IsFinished(const Job& job) {
  if (job.record.step() < job.steps()) return false;
  if (!job.has_folder()) return true;
  const v1::CheckpointRecord* const commit = NewestCommit(job);
  return commit != nullptr && commit->step() >= job.steps();
}

JobEnd Success(const Job& job) {
  return {v1::JOB_STATE_SUCCEEDED, std::nullopt, CountText(job.steps(), "step")};
}

Transition AfterCommit(StopPurpose purpose, int64_t step) {
  switch (purpose) {
    case StopPurpose::kGrow:
      return GrowthCommitted{step};
    case StopPurpose::kMove:
      return GroupMoves{step};
    case StopPurpose::kCancel:
    case StopPurpose::kCancelAnyway:
      return JobEnd{v1::JOB_STATE_CANCELLED, std::nullopt,
                    fmt::format("cancelled after its commit of step {}", step)};
  }
  return {};
}

JobEnd CancelWithoutCommit(const Job& job, const std::string& failure) {
  std::string text = "cancelled";
  if (!failure.empty()) text += " without a commit: " + failure;
  if (const std::string lost = LostStepsText(job); !lost.empty()) text += "; " + lost;
  return {v1::JOB_STATE_CANCELLED, std::nullopt, std::move(text)};
}

std::string LostStepsText(const Job& job) {
  const v1::CheckpointRecord* const commit = NewestCommit(job);
  const int64_t kept = std::max(commit != nullptr ? commit->step() : 0, job.images.step());
  const int64_t last = job.record.step();
  if (last <= kept) return "";
  if (kept == 0 && !job.spec.checkpoint().initial_load().empty())
    return fmt::format("the steps from checkpoint.initial_load to {} are in no commit", last);
  if (last == kept + 1) return fmt::format("step {} is in no commit", last);
  return fmt::format("steps {} to {} are in no commit", kept + 1, last);
}

}  // namespace troupe
