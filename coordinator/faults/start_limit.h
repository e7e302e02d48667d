// The time in which all ranks of a job must be ready. Pure.
#ifndef TROUPE_COORDINATOR_FAULTS_START_LIMIT_H_
#define TROUPE_COORDINATOR_FAULTS_START_LIMIT_H_

#include "base/clock.h"
#include "base/time_limits.h"
#include "troupe/v1/job.pb.h"
#include "troupe/v1/plan.pb.h"

namespace troupe {

// libtpu takes 100 s for a block of llama-1b with 2,048 tokens (docs/tpu.md).
inline constexpr double kCompileSecondsPerBlock = 120;

struct StartInputs {
  double restored_bytes = 0;  // all ranks together
  int compiled_blocks = 0;
  double stated_seconds = 0;  // fault_tolerance.hang_seconds
};

// Returns the blocks of the largest stage if a compiler of the devices makes its programs when the
// ranks start; otherwise 0.
int CompiledBlocks(const v1::JobSpec& spec, const v1::Plan& plan);

// Returns the startup allowance, plus a restore at the slowest rate, plus the compilation; or the
// stated time if it is longer; at least limits.start, and at most a day.
Duration StartLimit(const StartInputs& inputs, const TimeLimits& limits);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_FAULTS_START_LIMIT_H_
