// Compares training on any backend with the recorded losses of the CPU, for tests.
#ifndef TROUPE_TESTS_GPU_EXPECT_CPU_LOSSES_H_
#define TROUPE_TESTS_GPU_EXPECT_CPU_LOSSES_H_

#include <cstdint>
#include <string>

#include "kernels/backend/backend.h"
#include "tests/gpu/cpu_losses.h"

namespace troupe {

// Expects that training with the options of `recorded`, on a backend that computes on `devices`
// ("cpu" or "cuda"), has the recorded loss within `tolerance` (relative) at each of the first
// `steps` steps. Reports the first step that differs with both losses. Prints the largest
// difference of the run. REQUIRES: 1 <= steps <= recorded.training.steps.
void ExpectCpuLosses(kernels::Backend& backend, const std::string& devices,
                     const CpuLosses& recorded, int64_t steps, double tolerance);

}  // namespace troupe

#endif  // TROUPE_TESTS_GPU_EXPECT_CPU_LOSSES_H_
