// Which commits may go. Pure.
#ifndef TROUPE_CHECKPOINT_RETENTION_H_
#define TROUPE_CHECKPOINT_RETENTION_H_

#include <cstdint>
#include <span>
#include <vector>

#include "troupe/v1/checkpoint.pb.h"

namespace troupe {

struct RetentionPolicy {
  int64_t keep_latest_k = 0;       // 0: keep all
  int64_t keep_every_n_steps = 0;  // 0: no step is kept for its number
};

// How many newer commits there must be before one may be removed, whatever the policy says: should
// the newest turn out damaged, the one before it is still there.
inline constexpr int kNewerCommitsMin = 2;

// The attempts that may be deleted, oldest first. Of `records` (one job's, in any order) only those
// COMMITTED are considered, newer meaning a higher step (of one step, a higher attempt number: the
// numbers alone say nothing, since due attempts are numbered ahead of those asked for between
// them); quarantined, aborted and open ones neither go nor protect. Kept are the newest keep_latest_k, those whose step is a multiple of
// keep_every_n_steps, the pinned ones, and whatever has fewer than kNewerCommitsMin newer commits.
std::vector<int64_t> AttemptsToDelete(std::span<const v1::CheckpointRecord> records,
                                      const RetentionPolicy& policy);

}  // namespace troupe

#endif  // TROUPE_CHECKPOINT_RETENTION_H_
