// Runs small jobs and compares their steps.
#ifndef TROUPE_TESTS_LAYOUTS_EXPECT_STEPS_H_
#define TROUPE_TESTS_LAYOUTS_EXPECT_STEPS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tests/layouts/training.h"

namespace troupe {

// Returns PREFIX of a dataset that is written once per process.
const std::string& SmallDataPrefix();

// Returns SmallJob with documents of about six tokens that do not attend to each other.
v1::JobSpec PackedJob(const Layout& layout);

// Returns `spec`, a job of samples of 16 tokens, with data without a target in some of its steps,
// because documents have one token each. Neither has the sample of its validations after the first
// and the last step a target.
inline constexpr int64_t kFewTargetsSteps = 8;
v1::JobSpec WithFewTargets(v1::JobSpec spec);

// Expects that steps without a target, and validations, have a NaN as their loss and are applied
// with a gradient of zero.
void ExpectStepsWithoutATarget(const std::vector<StepResult>& steps);

// Returns the steps of rank 0. Expects that every rank succeeds, prepares its program once, and
// reports the same losses and norms.
std::vector<StepResult> RunOrDie(const v1::JobSpec& spec, const TrainOptions& options = {});

// Expects losses within 1e-6 and gradient norms within 1e-5 (relative), or NaNs in both, and equal
// tokens and learning rates.
void ExpectClose(const std::vector<StepResult>& actual, const std::vector<StepResult>& expected);

// Expects bit-identical steps.
void ExpectIdentical(const std::vector<StepResult>& actual,
                     const std::vector<StepResult>& expected);

}  // namespace troupe

#endif  // TROUPE_TESTS_LAYOUTS_EXPECT_STEPS_H_
