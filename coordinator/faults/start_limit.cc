#include "coordinator/faults/start_limit.h"

#include <algorithm>
#include <map>

#include "plan/device/device_traits.h"

namespace troupe {

int CompiledBlocks(const v1::JobSpec& spec, const v1::Plan& plan) {
  if (!TraitsIn(plan, DeviceTraitsOf(spec.devices())).compiles_programs) return 0;
  std::map<int, int> blocks;  // by stage
  int most = 0;
  for (const v1::ChunkPlan& chunk : plan.chunks())
    most = std::max(most, blocks[chunk.pipe_rank()] += chunk.block_count());
  return most;
}

Duration StartLimit(const StartInputs& inputs, const TimeLimits& limits) {
  constexpr double kSlowestBytesPerSecond = 50e6;
  constexpr double kLongestSeconds = 86400;
  const double starting = ToSeconds(limits.startup_allowance) +
                          inputs.restored_bytes / kSlowestBytesPerSecond +
                          inputs.compiled_blocks * kCompileSecondsPerBlock;
  const double seconds = std::min(std::max(starting, inputs.stated_seconds), kLongestSeconds);
  return std::max(limits.start, FromSeconds(seconds));
}

}  // namespace troupe
