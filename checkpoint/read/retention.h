// Decides which commits may be deleted. Pure.
#ifndef TROUPE_CHECKPOINT_READ_RETENTION_H_
#define TROUPE_CHECKPOINT_READ_RETENTION_H_

#include <cstdint>
#include <span>
#include <vector>

#include "troupe/v1/checkpoint.pb.h"

namespace troupe {

struct RetentionPolicy {
  int64_t keep_latest_k = 0;       // 0: keep all
  int64_t keep_every_n_steps = 0;  // 0: no commit is kept for its step
};

// A commit may be removed only if this many newer commits were read back and found intact, whatever
// the policy: if the newest is damaged, the one before it still exists.
inline constexpr int kNewerVerifiedMin = 2;

// Both functions below consider only the COMMITTED entries of `records` (one job's, in any order).
// Newer means a higher step, or for the same step a higher attempt number; attempt numbers alone do
// not order commits, because due attempts are numbered ahead of those requested between them.
// Quarantined, aborted and open entries are neither deleted nor do they protect others. The policy
// keeps the newest keep_latest_k commits (at least kNewerVerifiedMin; all if 0), those whose step
// is a multiple of keep_every_n_steps, and pinned ones.

// Returns the attempts that may be deleted, oldest first: those that the policy does not keep and
// that have at least kNewerVerifiedMin newer verified commits.
std::vector<int64_t> AttemptsToDelete(std::span<const v1::CheckpointRecord> records,
                                      const RetentionPolicy& policy);

// Returns the attempts that must be verified before another may be deleted, newest first. They are
// the newest unverified commits, as many as the newest commit that the policy does not keep still
// needs. Empty if the policy keeps everything, so that nothing is read in vain.
std::vector<int64_t> AttemptsToVerify(std::span<const v1::CheckpointRecord> records,
                                      const RetentionPolicy& policy);

}  // namespace troupe

#endif  // TROUPE_CHECKPOINT_READ_RETENTION_H_
