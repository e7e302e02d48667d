#include "checkpoint/retention.h"

#include <algorithm>
#include <utility>

namespace troupe {

std::vector<int64_t> AttemptsToDelete(std::span<const v1::CheckpointRecord> records,
                                      const RetentionPolicy& policy) {
  if (policy.keep_latest_k <= 0) return {};
  std::vector<const v1::CheckpointRecord*> commits;
  for (const v1::CheckpointRecord& record : records) {
    if (record.state() == v1::CHECKPOINT_STATE_COMMITTED) commits.push_back(&record);
  }
  std::sort(commits.begin(), commits.end(), [](const auto* a, const auto* b) {
    return std::pair(a->step(), a->attempt()) > std::pair(b->step(), b->attempt());
  });
  std::vector<int64_t> attempts;
  const size_t kept = std::max<size_t>(static_cast<size_t>(policy.keep_latest_k), kNewerCommitsMin);
  for (size_t i = kept; i < commits.size(); ++i) {
    const bool kept_for_step =
        policy.keep_every_n_steps > 0 && commits[i]->step() % policy.keep_every_n_steps == 0;
    if (!kept_for_step && !commits[i]->pinned()) attempts.push_back(commits[i]->attempt());
  }
  std::reverse(attempts.begin(), attempts.end());
  return attempts;
}

}  // namespace troupe
