#include "coordinator/job/attempt_writers.h"

#include <algorithm>

#include "coordinator/job/attempt_messages.h"
#include "coordinator/state/job_state.h"
#include "plan/cost/checkpoint_write.h"
#include "plan/job/job_choices.h"

namespace troupe {
namespace {

// Returns whether some rank has reported no step after `step`. A rank begins to write a checkpoint
// of `step` before it reports the next step.
bool SomeRankIsAt(const Group& group, int64_t step) {
  return std::any_of(group.ranks.begin(), group.ranks.end(),
                     [step](const RankState& rank) { return rank.reported_step <= step; });
}

// Returns whether some rank may write the attempt in the background: it did at its last report, or
// it has not reported since the coordinator's restart.
bool SomeRankWrites(const Group& group, int64_t attempt) {
  return std::any_of(group.ranks.begin(), group.ranks.end(), [attempt](const RankState& rank) {
    return rank.writing_attempt.value_or(attempt) == attempt;
  });
}

}  // namespace

bool MayBeWritten(const Job& job, const v1::CheckpointRecord& record, const Fleet& fleet) {
  if (job.group && job.group->epoch == record.group_epoch()) {
    return record.step() == 0 || SomeRankIsAt(*job.group, record.step()) ||
           SomeRankWrites(*job.group, record.attempt());
  }
  return std::any_of(fleet.leases.begin(), fleet.leases.end(), [&](const auto& entry) {
    return entry.second.job() == job.id() && entry.second.group_epoch() == record.group_epoch();
  });
}

Duration WritingAllowance(const Job& job) {
  const bool writes =
      std::any_of(job.checkpoints.begin(), job.checkpoints.end(), [&](const auto& entry) {
        const v1::CheckpointRecord& record = entry.second;
        return record.state() == v1::CHECKPOINT_STATE_ABORTED && record.step() > 0 &&
               record.group_epoch() == job.group->epoch &&
               (SomeRankIsAt(*job.group, record.step()) ||
                SomeRankWrites(*job.group, record.attempt()));
      });
  return writes ? FromSeconds(CheckpointWriteSeconds(job.spec, job.plan)) : Duration::zero();
}

bool HoldsUpRanks(const Job& job) {
  int begun = 0;
  bool last = false;
  for (const auto& [number, attempt] : job.attempts) {
    if (!attempt.begun) continue;
    ++begun;
    last |= ThenStop(job, attempt);
  }
  const bool async = SavesAsynchronously(job.spec.checkpoint());
  return begun > (async && !last ? 1 : 0);
}

}  // namespace troupe
