// Jobs whose ranks are threads, each with a device of XLA's CPU plugin for itself.
#ifndef TROUPE_TESTS_LAYOUTS_XLA_RUNS_H_
#define TROUPE_TESTS_LAYOUTS_XLA_RUNS_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "base/instrumented.h"
#include "kernels/xla/runtime/joined_pieces.h"
#include "tests/layouts/training.h"

namespace troupe {

inline constexpr int64_t kXlaSteps = kInstrumented ? 6 : 20;

// Options whose backends use their programs as `use` states. REQUIRES: there is a plugin.
TrainOptions OnXla(const kernels::xla::StepUse& use = {});

// Returns the steps of rank 0. Expects that no step compiles a program.
std::vector<StepResult> RunOnXla(const v1::JobSpec& job, const kernels::xla::StepUse& use = {},
                                 int64_t steps_to_run = kXlaSteps);

using RunJob = std::function<std::vector<StepResult>(const v1::JobSpec& job)>;

// Expects that `run` of a job of kXlaSteps steps has the losses and norms of `alone` on the CPU,
// which runs once for each pattern of blocks. Compilation takes most of the time: without a
// pipeline, both models have one block of each kind.
void ExpectLossesOfOneRank(const RunJob& run, v1::JobSpec job, v1::JobSpec alone);

// The rows of a table. A sanitizer makes compilation several times slower: there, `few` are run.
template <typename Row>
auto InFull(std::vector<Row> table, std::vector<Row> few = {}) {
  return testing::ValuesIn(kInstrumented ? std::move(few) : std::move(table));
}

}  // namespace troupe

#endif  // TROUPE_TESTS_LAYOUTS_XLA_RUNS_H_
