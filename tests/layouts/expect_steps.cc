#include "tests/layouts/expect_steps.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/temporary_directory.h"

namespace troupe {
namespace {

constexpr double kLossTolerance = 1e-6;  // relative, float32
constexpr double kNormTolerance = 1e-5;

}  // namespace

const std::string& SmallDataPrefix() {
  static const TemporaryDirectory folder;
  static const std::string prefix = [] {
    std::string path = folder.Child("small");
    WriteSmallDataset(path);
    return path;
  }();
  return prefix;
}

v1::JobSpec PackedJob(const Layout& layout) {
  static const TemporaryDirectory folder;
  static const std::string prefix = [] {
    std::string path = folder.Child("documents");
    WriteSmallDataset(path, 6);
    return path;
  }();
  v1::JobSpec spec = SmallJob(layout, prefix, 20);
  spec.mutable_data()->set_document_mask(true);
  return spec;
}

std::vector<StepResult> RunOrDie(const v1::JobSpec& spec, const TrainOptions& options) {
  TrainResult result = Train(spec, options);
  for (size_t rank = 0; rank < result.statuses.size(); ++rank) {
    EXPECT_TRUE(result.statuses[rank].ok()) << "rank " << rank << ": " << result.statuses[rank];
    EXPECT_EQ(result.prepares[rank], 1);
    EXPECT_EQ(result.steps[rank].size(), static_cast<size_t>(options.steps));
  }
  // Every rank reports the same numbers.
  for (const auto& steps : result.steps) {
    for (size_t i = 0; i < steps.size() && i < result.steps[0].size(); ++i) {
      EXPECT_EQ(steps[i].event.loss(), result.steps[0][i].event.loss());
      EXPECT_EQ(steps[i].event.grad_norm(), result.steps[0][i].event.grad_norm());
    }
  }
  return result.steps[0];
}

void ExpectClose(const std::vector<StepResult>& actual, const std::vector<StepResult>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    EXPECT_NEAR(actual[i].event.loss(), expected[i].event.loss(),
                kLossTolerance * std::abs(expected[i].event.loss()))
        << "loss of step " << actual[i].step;
    EXPECT_NEAR(actual[i].event.grad_norm(), expected[i].event.grad_norm(),
                kNormTolerance * expected[i].event.grad_norm())
        << "norm of step " << actual[i].step;
    EXPECT_EQ(actual[i].event.tokens(), expected[i].event.tokens());
    EXPECT_EQ(actual[i].event.learning_rate(), expected[i].event.learning_rate());
  }
}

void ExpectIdentical(const std::vector<StepResult>& actual,
                     const std::vector<StepResult>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    EXPECT_EQ(actual[i].step, expected[i].step);
    EXPECT_EQ(actual[i].event.loss(), expected[i].event.loss()) << "step " << actual[i].step;
    EXPECT_EQ(actual[i].event.grad_norm(), expected[i].event.grad_norm())
        << "step " << actual[i].step;
  }
}

}  // namespace troupe
