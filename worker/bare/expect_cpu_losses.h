// Training on any backend beside the recorded losses of the CPU's, for tests.
#ifndef TROUPE_WORKER_BARE_EXPECT_CPU_LOSSES_H_
#define TROUPE_WORKER_BARE_EXPECT_CPU_LOSSES_H_

#include <cstdint>
#include <string>

#include "kernels/backend.h"
#include "worker/bare/cpu_losses.h"

namespace troupe {

// Expects that training as `recorded` was made, on a backend that computes on `devices` ("cpu" or "cuda"), has at each of
// the first `steps` steps the recorded loss within `tolerance`, relative. The first step that has not is told with both
// losses. Prints the largest difference of the run. REQUIRES: 1 <= steps <= recorded.training.steps.
void ExpectCpuLosses(kernels::Backend& backend, const std::string& devices, const CpuLosses& recorded, int64_t steps,
                     double tolerance);

}  // namespace troupe

#endif  // TROUPE_WORKER_BARE_EXPECT_CPU_LOSSES_H_
