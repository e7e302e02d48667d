// How long ranks may take to write a checkpoint, for the limits that must not mistake one for a
// hang.
#ifndef TROUPE_PLAN_CHECKPOINT_WRITE_H_
#define TROUPE_PLAN_CHECKPOINT_WRITE_H_

#include <algorithm>
#include <cstdint>

#include "troupe/v1/job.pb.h"
#include "troupe/v1/plan.pb.h"

namespace troupe {

// For what the largest rank holds, at the slowest pace worth writing to; 0 without a folder.
inline double CheckpointWriteSeconds(const v1::JobSpec& spec, const v1::Plan& plan) {
  constexpr double kSlowestBytesPerSecond = 50e6;
  if (spec.checkpoint().folder().empty()) return 0;
  int64_t most = 0;
  for (const v1::RankMemory& memory : plan.memory()) {
    most = std::max(most, memory.parameter_bytes() + memory.optimizer_bytes());
  }
  return static_cast<double>(most) / kSlowestBytesPerSecond;
}

// For copying what the largest rank holds in memory, at the slowest pace that memory is worth; 0
// without a folder.
inline double CheckpointCopySeconds(const v1::JobSpec& spec, const v1::Plan& plan) {
  constexpr double kCopiesFasterThanWrites = 10;
  return CheckpointWriteSeconds(spec, plan) / kCopiesFasterThanWrites;
}

}  // namespace troupe

#endif  // TROUPE_PLAN_CHECKPOINT_WRITE_H_
