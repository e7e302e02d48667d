// Runs of small jobs, and what their steps must have in common.
#ifndef TROUPE_TESTS_LAYOUTS_EXPECT_STEPS_H_
#define TROUPE_TESTS_LAYOUTS_EXPECT_STEPS_H_

#include <string>
#include <vector>

#include "tests/layouts/training.h"

namespace troupe {

// PREFIX of a dataset that is written once in a process.
const std::string& SmallDataPrefix();

// SmallJob of documents of about six tokens, which do not see each other.
v1::JobSpec PackedJob(const Layout& layout);

// The steps of rank 0. Expects that every rank succeeds, prepares its program once, and knows the
// same losses and norms.
std::vector<StepResult> RunOrDie(const v1::JobSpec& spec, const TrainOptions& options = {});

// Expects losses within 1e-6 and gradient norms within 1e-5, relative, and the same tokens and
// learning rates.
void ExpectClose(const std::vector<StepResult>& actual, const std::vector<StepResult>& expected);

// Expects the same bits.
void ExpectIdentical(const std::vector<StepResult>& actual,
                     const std::vector<StepResult>& expected);

}  // namespace troupe

#endif  // TROUPE_TESTS_LAYOUTS_EXPECT_STEPS_H_
