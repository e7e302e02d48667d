// Upper bounds on the time to write a checkpoint. Timeouts use them so that a slow write is not
// taken for a hang.
#ifndef TROUPE_PLAN_COST_CHECKPOINT_WRITE_H_
#define TROUPE_PLAN_COST_CHECKPOINT_WRITE_H_

#include <algorithm>
#include <cstdint>

#include "plan/job/job_rules.h"
#include "troupe/v1/job.pb.h"
#include "troupe/v1/plan.pb.h"

namespace troupe {

// Seconds in which the rank with the largest state writes it at the slowest supported storage rate;
// 0 without a checkpoint folder.
inline double CheckpointWriteSeconds(const v1::JobSpec& spec, const v1::Plan& plan) {
  constexpr double kSlowestBytesPerSecond = 50e6;
  if (!HasCheckpointFolder(spec)) return 0;
  int64_t most = 0;
  for (const v1::RankMemory& memory : plan.memory()) {
    most = std::max(most, memory.parameter_bytes() + memory.optimizer_bytes());
  }
  return static_cast<double>(most) / kSlowestBytesPerSecond;
}

// Seconds in which the rank with the largest state copies it in memory, at 10 times the storage
// rate above; 0 without a checkpoint folder.
inline double CheckpointCopySeconds(const v1::JobSpec& spec, const v1::Plan& plan) {
  constexpr double kCopiesFasterThanWrites = 10;
  return CheckpointWriteSeconds(spec, plan) / kCopiesFasterThanWrites;
}

}  // namespace troupe

#endif  // TROUPE_PLAN_COST_CHECKPOINT_WRITE_H_
