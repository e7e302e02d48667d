// Tests dropout and the z-loss of the head on every axis: the dropped elements, losses and norms
// are those of one rank.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "base/temporary_directory.h"
#include "tests/layouts/expect_steps.h"
#include "tests/layouts/experts_job.h"
#include "tests/layouts/training.h"

namespace troupe {
namespace {

constexpr int64_t kSteps = 8;

v1::JobSpec Job(const Layout& layout = {}) {
  v1::JobSpec spec = SmallJob(layout, SmallDataPrefix(), kSteps);
  spec.mutable_model()->set_hidden_dropout(0.2);
  return spec;
}

std::vector<StepResult> RunSteps(const v1::JobSpec& spec) {
  return RunOrDie(spec, {.steps = kSteps});
}

struct Case {
  std::string name;
  Layout layout;
  std::function<void(v1::JobSpec*)> change = [](v1::JobSpec*) {};
};

void OverContext(v1::JobSpec* spec, const char* method) {
  spec->mutable_parallelism()->set_context_parallel_degree(2);
  spec->mutable_parallelism()->set_context_parallel_method(method);
}

class DropoutLayouts : public ::testing::TestWithParam<Case> {};

TEST_P(DropoutLayouts, LossesAndNormsAreTheSingleRanks) {
  static const std::vector<StepResult> expected = RunSteps(Job());
  v1::JobSpec spread = Job(GetParam().layout);
  GetParam().change(&spread);
  ExpectClose(RunSteps(spread), expected);
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, DropoutLayouts,
    ::testing::Values(
        Case{"Tensor", {.tensor = 2}},
        Case{"TensorByRows",
             {.tensor = 2},
             [](v1::JobSpec* s) { s->mutable_parallelism()->set_sequence_parallel(true); }},
        Case{"TensorByRowsInParts",
             {.tensor = 2},
             [](v1::JobSpec* s) {
               s->mutable_parallelism()->set_sequence_parallel(true);
               s->mutable_parallelism()->set_tensor_parallel_parts(4);
               s->mutable_training()->set_micro_batch_size(2);
             }},
        // The rows of a rank begin within a sample.
        Case{"TensorByRowsOfSeveralSamples",
             {.tensor = 4},
             [](v1::JobSpec* s) {
               s->mutable_parallelism()->set_sequence_parallel(true);
               s->mutable_training()->set_micro_batch_size(3);
             }},
        Case{"ContextRing", {}, [](v1::JobSpec* s) { OverContext(s, "ring"); }},
        Case{"ContextExchange",
             {},
             [](v1::JobSpec* s) {
               OverContext(s, "all_to_all");
               s->mutable_training()->set_micro_batch_size(2);
             }},
        Case{"Pipe", {.pipe = 2}}, Case{"PipeFour", {.pipe = 4}},
        Case{"ZeroBubble", {.pipe = 2, .schedule = "ZBH1"}},
        Case{"DualPipe", {.pipe = 2, .schedule = "DualPipeV"}}, Case{"Data", {.data = 3}},
        Case{"Sharded", {.shard = 2, .zero_stage = 3}},
        Case{"MicrobatchesOfTwo",
             {},
             [](v1::JobSpec* s) { s->mutable_training()->set_micro_batch_size(2); }},
        Case{"Recomputed",
             {},
             [](v1::JobSpec* s) { s->mutable_activation_recomputation()->set_mode("full"); }},
        Case{"RecomputedSelectively",
             {.pipe = 2},
             [](v1::JobSpec* s) { s->mutable_activation_recomputation()->set_mode("selective"); }},
        Case{"Mixed",
             {.tensor = 2, .pipe = 2, .shard = 2, .zero_stage = 3},
             [](v1::JobSpec* s) {
               s->mutable_parallelism()->set_sequence_parallel(true);
               s->mutable_training()->set_micro_batch_size(2);
               s->mutable_activation_recomputation()->set_mode("full");
             }},
        Case{"MixedWithContext",
             {.data = 2, .tensor = 2},
             [](v1::JobSpec* s) {
               OverContext(s, "ring");
               s->mutable_parallelism()->set_sequence_parallel(true);
               s->mutable_training()->set_micro_batch_size(3);
             }}),
    [](const auto& info) { return info.param.name; });

TEST(Dropout, OfAMixtureIsThatOfOneRank) {
  const auto job = [](const Spread& spread) {
    v1::JobSpec spec = Mixture(spread, 4);
    spec.mutable_model()->set_hidden_dropout(0.2);
    return spec;
  };
  const std::vector<StepResult> expected = RunOrDie(job({}), {.steps = 4});
  for (const Spread& spread : {Spread{.expert = 2}, Spread{.expert = 2, .tensor = 2},
                               Spread{.expert = 2, .tensor = 2, .gathers = true},
                               Spread{.context = 2}, Spread{.pipe = 2}}) {
    ExpectClose(RunOrDie(job(spread), {.steps = 4}), expected);
  }
}

TEST(Dropout, ChangesLossesAndDependsOnTheSeed) {
  const double loss = RunSteps(Job()).front().event.loss();
  v1::JobSpec other = Job();
  other.mutable_training()->set_seed(12);
  EXPECT_NE(RunSteps(other).front().event.loss(), loss);
  v1::JobSpec without = Job();
  without.mutable_model()->set_hidden_dropout(0);
  const std::vector<StepResult> kept = RunSteps(without);
  EXPECT_NE(kept.front().event.loss(), loss);
  without.mutable_model()->clear_hidden_dropout();
  ExpectIdentical(RunSteps(without), kept);
}

TEST(Dropout, GoesOnFromACheckpointWithTheSameDraws) {
  for (const Layout& layout : {Layout{}, Layout{.tensor = 2, .pipe = 2}}) {
    const TemporaryDirectory own;
    const std::string attempt = own.Child("step-00000004-epoch-1-attempt-1");
    std::vector<StepResult> whole = RunSteps(Job(layout));
    RunOrDie(Job(layout), {.steps = 4, .save_path = attempt});
    whole.erase(whole.begin(), whole.begin() + 4);
    ExpectIdentical(RunOrDie(Job(layout), {.steps = 4, .restore_path = attempt}), whole);
  }
}

TEST(Dropout, DropsNothingInValidation) {
  // Both runs validate with the initial weights, with dropout and without.
  const auto validated = [](double probability) {
    v1::JobSpec spec = Job();
    spec.mutable_model()->set_hidden_dropout(probability);
    spec.mutable_data()->set_validation_fraction(0.1);
    spec.mutable_training()->set_validation_interval(1);
    // The rate is so small that the first update does not change the weights.
    spec.mutable_optimizer()->set_lr(1e-30);
    return RunOrDie(spec, {.steps = 2});
  };
  const std::vector<StepResult> with = validated(0.5), without = validated(0);
  for (size_t i = 0; i < with.size(); ++i) {
    ASSERT_TRUE(with[i].event.has_validation_loss());
    EXPECT_EQ(with[i].event.validation_loss(), without[i].event.validation_loss());
    EXPECT_NE(with[i].event.loss(), without[i].event.loss());
  }
}

TEST(Dropout, InBfloat16IsCloseToFloat32) {
  v1::JobSpec spec = Job({.tensor = 2});
  const std::vector<StepResult> expected = RunSteps(spec);
  spec.mutable_training()->set_compute_dtype("bfloat16");
  const std::vector<StepResult> actual = RunSteps(spec);
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(actual[i].event.loss(), expected[i].event.loss(), 2e-2 * expected[i].event.loss());
  }
}

// --- The z-loss of the head.

TEST(ZLoss, MovesGradientsAndNotTheReportedLossTheSameUnderEveryLayout) {
  const auto job = [](const Layout& layout, double coef) {
    v1::JobSpec spec = SmallJob(layout, SmallDataPrefix(), kSteps);
    spec.mutable_training()->set_z_loss_coef(coef);
    return spec;
  };
  const std::vector<StepResult> without = RunSteps(job({}, 0)), expected = RunSteps(job({}, 0.1));
  EXPECT_EQ(expected.front().event.loss(), without.front().event.loss());
  EXPECT_GT(std::abs(expected.front().event.grad_norm() / without.front().event.grad_norm() - 1),
            1e-3);
  for (const Layout& layout :
       {Layout{.tensor = 2}, Layout{.tensor = 4}, Layout{.data = 2, .tensor = 2, .pipe = 2},
        Layout{.tensor = 2, .shard = 2, .zero_stage = 3}}) {
    ExpectClose(RunSteps(job(layout, 0.1)), expected);
  }
  for (const int tensor : {1, 2}) {
    v1::JobSpec spec = job({.tensor = tensor}, 0.1);
    spec.mutable_training()->set_compute_dtype("bfloat16");
    const std::vector<StepResult> actual = RunSteps(spec);
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(actual[i].event.loss(), expected[i].event.loss(),
                  2e-2 * expected[i].event.loss());
      EXPECT_NEAR(actual[i].event.grad_norm(), expected[i].event.grad_norm(),
                  5e-2 * expected[i].event.grad_norm());
    }
  }
}

}  // namespace
}  // namespace troupe
