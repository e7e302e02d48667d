// Jobs whose ranks are threads, each with a device of XLA's CPU plugin for itself.
#ifndef TROUPE_TESTS_LAYOUTS_XLA_RUNS_H_
#define TROUPE_TESTS_LAYOUTS_XLA_RUNS_H_

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/testing/test_extent.h"
#include "kernels/xla/runtime/joined_pieces.h"
#include "tests/layouts/training.h"

namespace troupe {

inline constexpr int64_t kXlaSteps = kInstrumented ? 6 : 20;

// Options for kXlaSteps steps, whose backends use their programs as `use` states. REQUIRES: there
// is a plugin.
TrainOptions OnXla(const kernels::xla::StepUse& use = {});

// The programs that XlaPrograms has compiled.
std::vector<std::string> CompiledPrograms();

// Returns what `train`, which is RunOrDie or Train, returns for the job. Expects that no step
// compiles a program.
template <typename Train>
auto Prepared(const Train& train, const v1::JobSpec& job, TrainOptions options) {
  std::atomic<size_t> prepared = 0;
  options.before_steps = [&](int, Executor&) { prepared = CompiledPrograms().size(); };
  auto result = train(job, options);
  const std::vector<std::string> programs = CompiledPrograms();
  EXPECT_EQ(programs.size(), prepared) << "compiled in a step: " << programs.back();
  return result;
}

// Expects that a job of kXlaSteps steps has the losses and norms of `alone` on the CPU, which runs
// once for each pattern of blocks, and that no step compiles a program. Compilation takes most of
// the time: without a pipeline, both models have one block of each kind.
void ExpectLossesOfOneRank(const TrainOptions& options, v1::JobSpec job, v1::JobSpec alone);

// The rows of a table that are run: every `nth`, and all of them in `./run test full`, because
// compilation takes seconds a row. A sanitizer makes it several times slower: there, `few` are run.
template <typename Row>
auto RowsOf(const std::vector<Row>& table, size_t nth, const std::vector<Row>& few = {}) {
  return testing::ValuesIn(kInstrumented ? few : Share(table, nth));
}

}  // namespace troupe

#endif  // TROUPE_TESTS_LAYOUTS_XLA_RUNS_H_
