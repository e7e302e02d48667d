// Tests optimizers beyond their formulas, under every layout: which steps bias correction counts,
// which tensors have weight decay, steps without a target, and SGD in place of AdamW.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/file_system.h"
#include "base/temporary_directory.h"
#include "checkpoint/format/attempt.h"
#include "checkpoint/format/manifest.h"
#include "checkpoint/write/ownership.h"
#include "kernels/cuda/emulated/emulated_backend.h"
#include "model/parameter_slices.h"
#include "plan/make_plan.h"
#include "tests/layouts/expect_steps.h"
#include "tests/layouts/experts_job.h"
#include "tests/layouts/training.h"
#include "worker/executor/shards.h"

namespace troupe {
namespace {

constexpr double kRate = 1e-3;

v1::JobSpec Job(const Layout& layout = {}, int64_t steps = 4) {
  v1::JobSpec spec = SmallJob(layout, SmallDataPrefix(), steps);
  spec.mutable_training()->set_on_nonfinite("skip_step");
  spec.mutable_lr_schedule()->set_warmup_steps(0);
  spec.mutable_optimizer()->set_lr(kRate);
  return spec;
}

void OnDevice(TrainOptions* options) {
  options->control_lag_steps = 1;
  options->make_backend = [](int) -> StatusOr<std::unique_ptr<kernels::Backend>> {
    return std::make_unique<kernels::EmulatedBackend>();
  };
}

// Makes rank 0's gradients of `step` non-finite.
void SkipStep(int64_t step, TrainOptions* options) {
  options->before_update = [step](int rank, Executor& executor) {
    if (rank != 0 || executor.submitted_step() + 1 != step) return;
    const model::ValueId gradient = executor.program().parameters[0].reduced_gradient;
    const std::vector<float> numbers(
        static_cast<size_t>(executor.program().value(gradient).elements()), std::nanf(""));
    ASSERT_TRUE(executor.executable().Write(gradient, 0, std::as_bytes(std::span(numbers))).ok());
  };
}

std::vector<float> Read(Executor& executor, model::ValueId value) {
  std::vector<float> numbers(static_cast<size_t>(executor.program().value(value).elements()));
  EXPECT_TRUE(
      executor.executable().Read(value, 0, std::as_writable_bytes(std::span(numbers))).ok());
  return numbers;
}

// Returns the steps of rank 0. Expects every rank to succeed.
std::vector<StepResult> Steps(const v1::JobSpec& spec, const TrainOptions& options) {
  const TrainResult result = Train(spec, options);
  for (const Status& status : result.statuses) EXPECT_TRUE(status.ok()) << status;
  return result.steps[0];
}

void ExpectClosePairs(std::vector<StepResult> actual, std::vector<StepResult> expected) {
  // A skipped step has no norm.
  std::erase_if(actual, [](const StepResult& step) { return step.event.skipped(); });
  std::erase_if(expected, [](const StepResult& step) { return step.event.skipped(); });
  ExpectClose(actual, expected);
}

// The parameter: whether it runs on a device.
class AppliedSteps : public testing::TestWithParam<bool> {};

TEST_P(AppliedSteps, TheFirstOneThatIsAppliedIsCorrectedAsTheFirst) {
  TrainOptions options{.steps = 2};
  if (GetParam()) OnDevice(&options);
  SkipStep(1, &options);
  const auto norm_of = [](Executor& executor) {
    for (const model::ParameterEntry& entry : executor.program().parameters) {
      if (executor.program().value(entry.value).name == "head.norm")
        return Read(executor, entry.value);
    }
    return std::vector<float>();
  };
  std::vector<float> before, after;
  options.before_steps = [&](int, Executor& executor) { before = norm_of(executor); };
  options.after_steps = [&](int, Executor& executor) { after = norm_of(executor); };
  const std::vector<StepResult> steps = Steps(Job({}, 2), options);
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_TRUE(steps[0].event.skipped());
  EXPECT_FALSE(steps[1].event.skipped());
  ASSERT_FALSE(before.empty());
  ASSERT_EQ(before.size(), after.size());
  double most = 0;
  for (size_t i = 0; i < before.size(); ++i)
    most = std::max(most, std::abs(double{after[i]} - before[i]));
  // Both moments are corrected to g and g²; counted as a second step the update would be 0.73 of
  // that.
  EXPECT_NEAR(most, kRate, 0.01 * kRate);
}

INSTANTIATE_TEST_SUITE_P(Devices, AppliedSteps, testing::Bool(),
                         [](const auto& info) { return info.param ? "Emulated" : "Cpu"; });

constexpr Layout kLayouts[] = {
    {.data = 2}, {.tensor = 2}, {.pipe = 2}, {.shard = 2, .zero_stage = 3}, {.context = 2}};

TEST(AppliedStepsOfLayouts, AreTheSameOnEveryRankAndGiveTheSingleRanksLosses) {
  const auto run = [](const Layout& layout) {
    TrainOptions options{.steps = 4};
    SkipStep(2, &options);
    options.after_steps = [](int rank, Executor& executor) {
      EXPECT_EQ(Read(executor, executor.program().applied_steps), std::vector<float>{3}) << rank;
    };
    return Steps(Job(layout), options);
  };
  const std::vector<StepResult> expected = run({});
  ASSERT_EQ(expected.size(), 4u);
  EXPECT_TRUE(expected[1].event.skipped());
  for (const Layout& layout : kLayouts) ExpectClosePairs(run(layout), expected);
}

TEST(AppliedStepsOfCheckpoints, GoOnUnderTheSameAndAnotherLayout) {
  TrainOptions whole{.steps = 5};
  SkipStep(2, &whole);
  const Layout source = {.data = 2};
  const std::vector<StepResult> all = Steps(Job(source, 5), whole);
  const std::vector<StepResult> expected(all.begin() + 3, all.end());
  const TemporaryDirectory folder;
  TrainOptions first{.steps = 3, .save_path = folder.Child("step-00000003-epoch-1-attempt-1")};
  SkipStep(2, &first);
  Steps(Job(source, 5), first);
  for (const Layout& target : {source, Layout{.pipe = 2}, Layout{.shard = 3, .zero_stage = 2}}) {
    TrainOptions second{.steps = 2, .restore_path = first.save_path};
    second.before_steps = [](int rank, Executor& executor) {
      EXPECT_EQ(Read(executor, executor.program().applied_steps), std::vector<float>{2}) << rank;
    };
    const std::vector<StepResult> resumed = Steps(Job(target, 5), second);
    if (target.data == source.data) {
      ExpectIdentical(resumed, expected);
    } else {
      ExpectClose(resumed, expected);
    }
  }
}

// Writes a checkpoint as builds did that did not count applied steps.
void SaveWithoutCount(const v1::JobSpec& spec, const std::string& path, int64_t step,
                      Executor& executor) {
  PosixFileSystem files;
  const v1::Plan plan = MakeUnplacedPlan(spec).value();
  std::vector<ShardTensor> tensors =
      OwnedTensors(AssignOwners(SlicesOfRanks(spec, plan).value())[0], executor.program(),
                   executor.executable());
  const size_t removed = std::erase_if(tensors, [](const ShardTensor& tensor) {
    return tensor.slice.name == model::kAppliedStepsTensor;
  });
  EXPECT_EQ(removed, 1u);
  TROUPE_CHECK_OK(MakeAttemptDirectory(files, path));
  v1::CheckpointManifest manifest;
  manifest.set_format_version(kManifestFormatVersion);
  manifest.set_job("jobs/small");
  manifest.set_attempt(1);
  manifest.set_group_epoch(1);
  manifest.mutable_state()->set_step(step);
  manifest.mutable_state()->set_seed(spec.training().seed());
  *manifest.mutable_layout() = plan.mesh();
  manifest.set_job_spec_json("{}");
  *manifest.add_shards() = WriteShard(files, path, 0, tensors).value();
  TROUPE_CHECK_OK(WriteManifest(files, path, manifest).status());
}

TEST(AppliedStepsOfCheckpoints, OfOldOnesAreTheirSteps) {
  const v1::JobSpec spec = Job();
  const TemporaryDirectory folder;
  const std::string path = folder.Child("step-00000002-epoch-1-attempt-1");
  const std::vector<StepResult> all = RunOrDie(spec, {.steps = 4});
  TrainOptions first{.steps = 2};
  first.after_steps = [&](int, Executor& executor) { SaveWithoutCount(spec, path, 2, executor); };
  RunOrDie(spec, first);
  ExpectIdentical(RunOrDie(spec, {.steps = 2, .restore_path = path}),
                  std::vector<StepResult>(all.begin() + 2, all.end()));
}

// Returns the weights by tensor after `steps`, from the first rank that holds the tensor.
std::map<std::string, std::vector<float>> WeightsAfter(const v1::JobSpec& spec,
                                                       TrainOptions options) {
  std::mutex mutex;
  std::map<std::string, std::vector<float>> weights;
  options.after_steps = [&](int, Executor& executor) {
    for (const model::ParameterEntry& entry : executor.program().parameters) {
      const std::vector<float> numbers = Read(executor, entry.value);
      const int64_t row = executor.program().value(entry.value).row_elements();
      std::lock_guard lock(mutex);
      for (const model::ParameterPart& part : entry.parts) {
        const auto begin = numbers.begin() + part.row_begin * row;
        weights.emplace(part.name, std::vector<float>(begin, begin + part.local_shape[0] * row));
      }
    }
  };
  Steps(spec, options);
  return weights;
}

void SetNoDecay(std::initializer_list<const char*> globs, v1::JobSpec* spec) {
  spec->mutable_optimizer()->clear_no_weight_decay();
  for (const char* glob : globs) spec->mutable_optimizer()->add_no_weight_decay(glob);
}

// The parameter: whether it runs on a device.
class NoWeightDecay : public testing::TestWithParam<bool> {};

TEST_P(NoWeightDecay, LeavesOutWhatItsGlobsNameAndNothingElse) {
  constexpr double kDecay = 0.5;
  v1::JobSpec spec = Job({}, 1);
  spec.mutable_optimizer()->set_weight_decay(kDecay);
  TrainOptions options{.steps = 1};
  if (GetParam()) OnDevice(&options);
  SetNoDecay({""}, &spec);
  const auto all = WeightsAfter(spec, options);
  SetNoDecay({"*.k_proj.weight", "*.layers.1.mlp.gate_proj.weight", "model.norm.*"}, &spec);
  const auto some = WeightsAfter(spec, options);
  ASSERT_EQ(all.size(), some.size());
  int exempt = 0;
  for (const auto& [name, decayed] : all) {
    const std::vector<float>& kept = some.at(name);
    const bool is_exempt = name.ends_with(".k_proj.weight") || name == "model.norm.weight" ||
                           name == "model.layers.1.mlp.gate_proj.weight";
    exempt += is_exempt;
    if (!is_exempt) {
      EXPECT_EQ(kept, decayed) << name;
      continue;
    }
    for (size_t i = 0; i < kept.size(); ++i) {
      // kept = w - step, decayed = w (1 - rate·decay) - step, |step| <= rate.
      const double due = kRate * kDecay * kept[i];
      ASSERT_NEAR(double{kept[i]} - decayed[i], due, kRate * kDecay * 1.1 * kRate + 1e-7)
          << name << " " << i;
    }
    EXPECT_NE(kept, decayed) << name;
  }
  EXPECT_EQ(exempt, 4);
}

// Steps without a target, which have no loss and a gradient of zero.
TEST(FewTargets, GiveAStepAGradientOfZeroUnderEveryLayout) {
  const auto job = [](const Layout& layout) {
    v1::JobSpec spec = WithFewTargets(SmallJob(layout, SmallDataPrefix(), kFewTargetsSteps));
    spec.mutable_training()->set_norms_interval(1);
    return spec;
  };
  const std::vector<StepResult> expected = RunOrDie(job({}), {.steps = kFewTargetsSteps});
  ExpectStepsWithoutATarget(expected);
  for (const StepResult& step : expected) {
    for (const v1::BlockNorm& norm : step.event.norms())
      EXPECT_EQ(norm.gradient() > 0, step.event.tokens() > 0) << step.step << " " << norm.block();
  }
  for (const Layout& layout : std::vector<Layout>{{.data = 2},
                                                  {.tensor = 2},
                                                  {.pipe = 2},
                                                  {.pipe = 2, .schedule = "ZBV"},
                                                  {.shard = 2, .zero_stage = 3},
                                                  {.context = 2}}) {
    const auto steps = RunOrDie(job(layout), {.steps = kFewTargetsSteps});
    ExpectStepsWithoutATarget(steps);
    ExpectClose(steps, expected);
  }
}

TEST(FewTargets, GiveAStepAGradientOfZeroInAMixture) {
  const auto job = [](const Spread& spread) {
    v1::JobSpec spec = WithFewTargets(Mixture(spread));
    spec.mutable_model()->set_router_bias_update_rate(1e-3);
    return spec;
  };
  const std::vector<StepResult> expected = RunOrDie(job({}), {.steps = kFewTargetsSteps});
  ExpectStepsWithoutATarget(expected);
  ExpectClose(RunOrDie(job({.expert = 2}), {.steps = kFewTargetsSteps}), expected);
}

// The device decides by itself whether to halt, and a step is in flight when the host learns of it.
TEST(FewTargets, GiveAStepAGradientOfZeroOnDevices) {
  const auto job = [](const Layout& layout) {
    v1::JobSpec spec = WithFewTargets(SmallJob(layout, SmallDataPrefix(), kFewTargetsSteps));
    spec.mutable_model()->set_pattern("AD");
    return spec;
  };
  TrainOptions options{.steps = kFewTargetsSteps};
  const std::vector<StepResult> expected = RunOrDie(job({}), options);
  OnDevice(&options);
  const auto steps = RunOrDie(job({.data = 2}), options);
  ExpectStepsWithoutATarget(steps);
  ExpectClose(steps, expected);
}

INSTANTIATE_TEST_SUITE_P(Devices, NoWeightDecay, testing::Bool(),
                         [](const auto& info) { return info.param ? "Emulated" : "Cpu"; });

TEST(NoWeightDecayOfLayouts, IsThatOfTheSingleRank) {
  const auto job = [](const Layout& layout, bool listed) {
    v1::JobSpec spec = Job(layout, 6);
    spec.mutable_optimizer()->set_lr(1e-2);
    spec.mutable_optimizer()->set_weight_decay(2);
    if (listed) SetNoDecay({"*.q_proj.weight", "*.up_proj.weight", "lm_head.*"}, &spec);
    return spec;
  };
  const std::vector<StepResult> expected = RunOrDie(job({}, true), {.steps = 6});
  EXPECT_GT(std::abs(RunOrDie(job({}, false), {.steps = 6}).back().event.loss() -
                     expected.back().event.loss()),
            1e-4);
  for (const Layout& layout : kLayouts)
    ExpectClose(RunOrDie(job(layout, true), {.steps = 6}), expected);
  ExpectClose(RunOrDie(job({.shard = 3, .zero_stage = 1}, true), {.steps = 6}), expected);
}

struct Sgd {
  double momentum;
  bool nesterov;
};
constexpr Sgd kSgds[] = {{0, false}, {0.9, false}, {0.9, true}};

v1::JobSpec WithSgd(v1::JobSpec spec, const Sgd& sgd) {
  spec.clear_optimizer();
  spec.mutable_optimizer()->set_name("sgd");
  spec.mutable_optimizer()->set_lr(0.1);
  spec.mutable_optimizer()->set_weight_decay(0.01);
  spec.mutable_optimizer()->set_momentum(sgd.momentum);
  spec.mutable_optimizer()->set_nesterov(sgd.nesterov);
  return spec;
}

TEST(SgdOfLayouts, HasTheLossesOfTheSingleRank) {
  std::vector<double> last;
  for (const Sgd& sgd : kSgds) {
    const auto run = [&](const Layout& layout, TrainOptions options = {.steps = 4}) {
      return RunOrDie(WithSgd(Job(layout), sgd), options);
    };
    const std::vector<StepResult> expected = run({});
    EXPECT_LT(expected.back().event.loss(), expected.front().event.loss());
    last.push_back(expected.back().event.loss());
    for (const Layout& layout : kLayouts) ExpectClose(run(layout), expected);
    ExpectClose(run({.shard = 3, .zero_stage = 1}), expected);
    TrainOptions on_device{.steps = 4};
    OnDevice(&on_device);
    ExpectClose(run({.data = 2}, on_device), expected);
  }
  // Momentum and its form have an effect.
  EXPECT_LT(last[1], last[0]);
  EXPECT_NE(last[2], last[1]);
}

TEST(SgdOfLayouts, HasTheLossesOfTheSingleRankInAMixture) {
  const auto run = [](const Spread& spread) {
    return RunOrDie(WithSgd(Mixture(spread, 4), kSgds[2]), {.steps = 4});
  };
  ExpectClose(run({.expert = 2}), run({}));
}

TEST(SgdOfCheckpoints, GoesOnUnderTheSameAndAnotherLayout) {
  for (const Sgd& sgd : kSgds) {
    const Layout source = {.data = 2};
    const auto job = [&](const Layout& layout) { return WithSgd(Job(layout, 5), sgd); };
    const std::vector<StepResult> all = RunOrDie(job(source), {.steps = 5});
    const std::vector<StepResult> expected(all.begin() + 3, all.end());
    const TemporaryDirectory folder;
    const std::string path = folder.Child("step-00000003-epoch-1-attempt-1");
    RunOrDie(job(source), {.steps = 3, .save_path = path});
    const TrainOptions second{.steps = 2, .restore_path = path};
    ExpectIdentical(RunOrDie(job(source), second), expected);
    ExpectClose(RunOrDie(job({.pipe = 2}), second), expected);
    ExpectClose(RunOrDie(job({.shard = 3, .zero_stage = 2}), second), expected);
  }
}

TEST(NoWeightDecayOfLayouts, DistinguishesTheExpertsOfABank) {
  const auto job = [](const Spread& spread) {
    v1::JobSpec spec = Mixture(spread, 4);
    spec.mutable_optimizer()->set_weight_decay(2);
    SetNoDecay({"*.experts.[0-4].*", "*.gate.weight"}, &spec);
    return spec;
  };
  ExpectClose(RunOrDie(job({.expert = 2, .shard = 2}), {.steps = 4}),
              RunOrDie(job({}), {.steps = 4}));
}

}  // namespace
}  // namespace troupe
