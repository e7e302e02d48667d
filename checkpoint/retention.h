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

// How many newer commits there must be that were read back and found whole before one may be
// removed, whatever the policy says: should the newest go bad, the one before it is still there.
inline constexpr int kNewerVerifiedMin = 2;

// Of `records` (one job's, in any order) only those COMMITTED are considered, newer meaning a
// higher step (of one step, a higher attempt number: the numbers alone say nothing, since due
// attempts are numbered ahead of those asked for between them); quarantined, aborted and open ones
// neither go nor protect. The policy keeps the newest keep_latest_k (at least kNewerVerifiedMin,
// unless 0), those whose step is a multiple of keep_every_n_steps, and the pinned ones.

// The attempts that may be deleted, oldest first: those that the policy does not keep and that have
// at least kNewerVerifiedMin newer verified commits.
std::vector<int64_t> AttemptsToDelete(std::span<const v1::CheckpointRecord> records,
                                      const RetentionPolicy& policy);

// The attempts that must be found whole before anything else may be deleted, newest first: as many
// of the newest unverified ones as the newest commit that the policy does not keep still lacks.
// None where the policy keeps everything, so that nothing is read in vain.
std::vector<int64_t> AttemptsToVerify(std::span<const v1::CheckpointRecord> records,
                                      const RetentionPolicy& policy);

}  // namespace troupe

#endif  // TROUPE_CHECKPOINT_RETENTION_H_
