#include "tests/layouts/expect_steps.h"

#include <gtest/gtest.h>

#include <cmath>
#include <span>

#include "base/check.h"
#include "base/file_system.h"
#include "base/temporary_directory.h"
#include "data/indexed_dataset_writer.h"

namespace troupe {
namespace {

constexpr double kLossTolerance = 1e-6;  // relative, float32
constexpr double kNormTolerance = 1e-5;

// The loss of a step without a target is a NaN on every rank.
bool IsSame(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

void ExpectNear(double actual, double expected, double tolerance, const char* what, int64_t step) {
  if (std::isnan(expected)) {
    EXPECT_TRUE(std::isnan(actual)) << what << " of step " << step << " is " << actual;
  } else {
    EXPECT_NEAR(actual, expected, tolerance * std::abs(expected)) << what << " of step " << step;
  }
}

void WriteDocuments(const std::string& prefix, std::span<const int> lengths) {
  PosixFileSystem files;
  auto writer = IndexedDatasetWriter::Create(files, {.prefix = prefix});
  TROUPE_CHECK_OK(writer.status());
  int32_t token = 0;
  for (const int length : lengths) {
    std::vector<int32_t> tokens;
    for (int i = 0; i < length; ++i) tokens.push_back(token = (token * 7 + 3) % 259);
    TROUPE_CHECK_OK((*writer)->Append(tokens));
    TROUPE_CHECK_OK((*writer)->EndDocument());
  }
  TROUPE_CHECK_OK((*writer)->Finish());
}

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

v1::JobSpec WithFewTargets(v1::JobSpec spec) {
  static const TemporaryDirectory folder;
  static const std::string prefix = [] {
    // A fourth of the samples are one document each, all other tokens a document each.
    std::vector<int> train, held_out(16, 1);
    for (int sample = 0; sample < 64; ++sample) {
      if (sample % 4 == 0) {
        train.push_back(16);
      } else {
        train.insert(train.end(), 16, 1);
      }
    }
    train.push_back(1);
    held_out.push_back(17);
    WriteDocuments(folder.Child("few"), train);
    WriteDocuments(folder.Child("held-out"), held_out);
    return folder.Child("few");
  }();
  spec.mutable_data()->set_train(prefix);
  spec.mutable_data()->set_validation(folder.Child("held-out"));
  spec.mutable_data()->set_document_mask(true);
  v1::TrainingSpec& training = *spec.mutable_training();
  training.set_steps(kFewTargetsSteps);
  training.set_global_batch_size(2);
  training.set_validation_interval(kFewTargetsSteps);
  training.set_validation_samples(1);
  return spec;
}

void ExpectStepsWithoutATarget(const std::vector<StepResult>& steps) {
  size_t without = 0;
  for (const StepResult& step : steps) {
    SCOPED_TRACE(step.step);
    EXPECT_FALSE(step.event.skipped());
    EXPECT_EQ(step.nonfinite, "");
    EXPECT_TRUE(std::isfinite(step.event.grad_norm()));
    const bool has_targets = step.event.tokens() > 0;
    EXPECT_EQ(std::isfinite(step.event.loss()), has_targets);
    EXPECT_EQ(step.event.grad_norm() > 0, has_targets);
    without += has_targets ? 0 : 1;
    if (!step.event.has_validation_loss()) continue;
    EXPECT_TRUE(std::isnan(step.event.validation_loss()));
    EXPECT_FALSE(std::signbit(step.event.validation_loss()));
  }
  EXPECT_GT(without, 0u);
  EXPECT_LT(without, steps.size());
  EXPECT_TRUE(std::isfinite(steps.back().event.loss())) << "no step shows the state at the end";
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
      EXPECT_TRUE(IsSame(steps[i].event.loss(), result.steps[0][i].event.loss()));
      EXPECT_EQ(steps[i].event.grad_norm(), result.steps[0][i].event.grad_norm());
    }
  }
  return result.steps[0];
}

void ExpectClose(const std::vector<StepResult>& actual, const std::vector<StepResult>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    ExpectNear(actual[i].event.loss(), expected[i].event.loss(), kLossTolerance, "loss",
               actual[i].step);
    ExpectNear(actual[i].event.grad_norm(), expected[i].event.grad_norm(), kNormTolerance, "norm",
               actual[i].step);
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
