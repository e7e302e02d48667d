// Tests jobs with FP8 linear layers: every recipe, under every layout, on the CPU and on emulated
// devices. Losses are those of one rank and close to those of bfloat16; repeats and resumes from a
// checkpoint are bit-identical.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "base/temporary_directory.h"
#include "kernels/cuda/emulated/emulated_backend.h"
#include "plan/job/job_defaults.h"
#include "tests/layouts/expect_steps.h"
#include "tests/layouts/experts_job.h"
#include "tests/layouts/training.h"

namespace troupe {
namespace {

v1::JobSpec InFloat8(v1::JobSpec spec, const std::string& recipe) {
  spec.mutable_training()->set_compute_dtype("bfloat16");
  spec.mutable_training()->mutable_float8()->set_recipe(recipe);
  ApplyDefaults(&spec);
  return spec;
}

v1::JobSpec Job(const Layout& layout, const std::string& recipe, int64_t steps) {
  return InFloat8(SmallJob(layout, SmallDataPrefix(), steps), recipe);
}

void ExpectLosses(const std::vector<StepResult>& actual, const std::vector<StepResult>& expected,
                  double within) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    EXPECT_NEAR(actual[i].event.loss(), expected[i].event.loss(), within * expected[i].event.loss())
        << "step " << i + 1;
  }
}

class Recipes : public ::testing::TestWithParam<const char*> {};

TEST_P(Recipes, LearnAsBfloat16DoesWithinTwoPercent) {
  constexpr int64_t kSteps = 30;
  const std::vector<StepResult> expected = RunOrDie(Job({}, "none", kSteps), {.steps = kSteps});
  const std::vector<StepResult> actual = RunOrDie(Job({}, GetParam(), kSteps), {.steps = kSteps});
  ExpectLosses(actual, expected, 0.02);
  EXPECT_LT(actual.back().event.loss(), actual.front().event.loss() - 0.1)
      << "nothing was learnt: the comparison is idle";
  EXPECT_NE(actual.back().event.loss(), expected.back().event.loss())
      << "nothing was quantised: the comparison is idle";
}

TEST_P(Recipes, GoOnFromACheckpointWithTheSameBits) {
  const v1::JobSpec spec = Job({.data = 2}, GetParam(), 8);
  const std::vector<StepResult> whole = RunOrDie(spec, {.steps = 8});
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/attempt-1";
  RunOrDie(spec, {.steps = 5, .save_path = path});
  ExpectIdentical(RunOrDie(spec, {.steps = 3, .restore_path = path}),
                  {whole.begin() + 5, whole.end()});
}

TEST_P(Recipes, GoOnFromACheckpointUnderAnotherLayout) {
  const v1::JobSpec spec = Job({.data = 2}, GetParam(), 8);
  const std::vector<StepResult> whole = RunOrDie(spec, {.steps = 8});
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/attempt-1";
  RunOrDie(spec, {.steps = 5, .save_path = path});
  for (const Layout& layout :
       {Layout{.tensor = 2, .by_rows = true}, Layout{.pipe = 2, .shard = 2, .zero_stage = 3}}) {
    ExpectLosses(RunOrDie(Job(layout, GetParam(), 8), {.steps = 3, .restore_path = path}),
                 {whole.begin() + 5, whole.end()}, 0.01);
  }
}

TEST_P(Recipes, GoOnFromACheckpointOfBfloat16) {
  const v1::JobSpec bfloat16 = Job({}, "none", 8);
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/attempt-1";
  const std::vector<StepResult> whole = RunOrDie(bfloat16, {.steps = 8});
  RunOrDie(bfloat16, {.steps = 5, .save_path = path});
  ExpectLosses(RunOrDie(Job({}, GetParam(), 8), {.steps = 3, .restore_path = path}),
               {whole.begin() + 5, whole.end()}, 0.02);
}

TEST_P(Recipes, MakeTheSameBitsAgainInBackward) {
  for (const int tensor : {1, 2}) {
    v1::JobSpec spec = Job({.tensor = tensor}, GetParam(), 4);
    const std::vector<StepResult> kept = RunOrDie(spec, {.steps = 4});
    for (const char* mode : {"selective", "full"}) {
      spec.mutable_activation_recomputation()->set_mode(mode);
      ExpectIdentical(RunOrDie(spec, {.steps = 4}), kept);
    }
  }
}

TEST_P(Recipes, HaveTheSameLossesWhereNothingIsOverlappedOrCutInParts) {
  for (const int zero_stage : {1, 2, 3}) {
    const v1::JobSpec sharded = Job({.shard = 2, .zero_stage = zero_stage}, GetParam(), 4);
    ExpectIdentical(RunOrDie(sharded, {.steps = 4}),
                    RunOrDie(sharded, {.steps = 4, .overlap = false}));
  }
  v1::JobSpec spec = Job({.data = 2, .tensor = 2, .by_rows = true}, GetParam(), 4);
  const std::vector<StepResult> plain = RunOrDie(spec, {.steps = 4, .overlap = false});
  ExpectIdentical(RunOrDie(spec, {.steps = 4}), plain);
  spec.mutable_parallelism()->set_tensor_parallel_parts(2);
  ExpectLosses(RunOrDie(spec, {.steps = 4}), plain, 0.01);
}

TEST_P(Recipes, AreNotDisturbedByValidation) {
  v1::JobSpec spec = Job({}, GetParam(), 5);
  spec.mutable_data()->set_validation_fraction(0.1);
  spec.mutable_training()->set_validation_interval(5);
  const std::vector<StepResult> rarely = RunOrDie(spec, {.steps = 5});
  spec.mutable_training()->set_validation_interval(1);
  ExpectIdentical(RunOrDie(spec, {.steps = 5}), rarely);
}

INSTANTIATE_TEST_SUITE_P(Float8, Recipes, ::testing::Values("current", "delayed", "blockwise"),
                         [](const auto& info) { return std::string(info.param); });

// --- Every layout against the single rank, and two runs against each other.

class LayoutsInFloat8 : public ::testing::TestWithParam<std::tuple<const char*, Layout>> {};

TEST_P(LayoutsInFloat8, HaveTheSingleRanksLossesWithinOnePercentAndTheSameBitsTwice) {
  const auto& [recipe, layout] = GetParam();
  constexpr int64_t kSteps = 8;
  const v1::JobSpec spec = Job(layout, recipe, kSteps);
  const std::vector<StepResult> actual = RunOrDie(spec, {.steps = kSteps});
  ExpectLosses(actual, RunOrDie(Job({}, recipe, kSteps), {.steps = kSteps}), 0.01);
  ExpectIdentical(RunOrDie(spec, {.steps = kSteps}), actual);
}

INSTANTIATE_TEST_SUITE_P(
    Float8, LayoutsInFloat8,
    ::testing::Combine(
        ::testing::Values("current", "delayed", "blockwise"),
        ::testing::Values(Layout{.data = 3}, Layout{.tensor = 2},
                          Layout{.tensor = 2, .by_rows = true}, Layout{.shard = 2, .zero_stage = 1},
                          Layout{.shard = 2, .zero_stage = 2},
                          Layout{.tensor = 2, .shard = 2, .zero_stage = 3, .by_rows = true},
                          Layout{.pipe = 2},
                          Layout{.pipe = 2, .shard = 2, .zero_stage = 3, .schedule = "ZBH1"},
                          Layout{.pipe = 2, .schedule = "ZBV"}, Layout{.context = 2})),
    [](const auto& info) {
      const Layout& layout = std::get<1>(info.param);
      return fmt::format("{}Data{}Tensor{}{}Shard{}Zero{}Pipe{}{}Context{}",
                         std::get<0>(info.param), layout.data, layout.tensor,
                         layout.by_rows ? "Rows" : "", layout.shard, layout.zero_stage, layout.pipe,
                         layout.schedule, layout.context);
    });

// --- With experts: shared experts are FP8 linear layers, routed experts stay bfloat16.

class MixturesInFloat8 : public ::testing::TestWithParam<std::tuple<const char*, Spread>> {};

TEST_P(MixturesInFloat8, HaveTheSingleRanksLossesWithinOnePercent) {
  const auto& [recipe, spread] = GetParam();
  constexpr int64_t kSteps = 6;
  const std::vector<StepResult> actual =
      RunOrDie(InFloat8(Mixture(spread, kSteps), recipe), {.steps = kSteps});
  ExpectLosses(actual, RunOrDie(InFloat8(Mixture({}, kSteps), recipe), {.steps = kSteps}), 0.01);
}

INSTANTIATE_TEST_SUITE_P(
    Float8, MixturesInFloat8,
    ::testing::Combine(
        ::testing::Values("current", "delayed", "blockwise"),
        ::testing::Values(Spread{.expert = 2}, Spread{.expert = 2, .tensor = 2, .by_rows = true},
                          Spread{.expert = 2, .tensor = 2, .over_tensor = true, .by_rows = true},
                          Spread{.expert = 2, .shard = 2, .zero_stage = 3})),
    [](const auto& info) {
      return std::string(std::get<0>(info.param)) + NameOf(std::get<1>(info.param));
    });

// --- On emulated devices.

TrainOptions OnDevices(int64_t steps) {
  TrainOptions options;
  options.steps = steps;
  options.make_backend = [](int) -> StatusOr<std::unique_ptr<kernels::Backend>> {
    return std::make_unique<kernels::EmulatedBackend>();
  };
  return options;
}

v1::JobSpec OfDevices(const std::string& recipe, const Layout& layout = {}) {
  v1::JobSpec spec = Job(layout, recipe, 3);
  spec.mutable_model()->set_pattern("AD");
  spec.mutable_training()->set_global_batch_size(4);
  return spec;
}

class DevicesInFloat8 : public ::testing::TestWithParam<const char*> {};

TEST_P(DevicesInFloat8, HaveTheCpusLossesWithinOnePercent) {
  const v1::JobSpec spec = OfDevices(GetParam());
  ExpectLosses(RunOrDie(spec, OnDevices(3)), RunOrDie(spec, {.steps = 3}), 0.01);
}

TEST_P(DevicesInFloat8, OfSeveralRanksHaveTheLossesOfOneOnTheCpuWithinOnePercent) {
  const std::vector<StepResult> expected = RunOrDie(OfDevices(GetParam()), {.steps = 3});
  for (const Layout& layout :
       {Layout{.data = 2}, Layout{.tensor = 2, .by_rows = true},
        Layout{.shard = 2, .zero_stage = 2}, Layout{.shard = 2, .zero_stage = 3}}) {
    ExpectLosses(RunOrDie(OfDevices(GetParam(), layout), OnDevices(3)), expected, 0.01);
  }
}

TEST_P(DevicesInFloat8, GoOnFromEachOthersCheckpoints) {
  const v1::JobSpec spec = OfDevices(GetParam());
  const std::vector<StepResult> whole = RunOrDie(spec, {.steps = 3});
  for (const bool saves_on_device : {false, true}) {
    const TemporaryDirectory directory;
    TrainOptions first = saves_on_device ? OnDevices(2) : TrainOptions{.steps = 2};
    first.save_path = directory.path() + "/attempt-1";
    RunOrDie(spec, first);
    TrainOptions second = saves_on_device ? TrainOptions{.steps = 1} : OnDevices(1);
    second.restore_path = first.save_path;
    ExpectLosses(RunOrDie(spec, second), {whole.begin() + 2, whole.end()}, 0.01);
  }
}

INSTANTIATE_TEST_SUITE_P(Float8, DevicesInFloat8,
                         ::testing::Values("current", "delayed", "blockwise"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace troupe
