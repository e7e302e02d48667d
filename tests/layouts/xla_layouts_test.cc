// Compares layouts of several ranks (threads) on XLA's CPU plugin with one rank on the CPU backend.
// Without the plugin every test is skipped with the reason.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/check.h"
#include "base/temporary_directory.h"
#include "kernels/xla/runtime/xla_backend.h"
#include "plan/schedules/schedules.h"
#include "tests/layouts/axis_table.h"
#include "tests/layouts/expect_steps.h"
#include "tests/layouts/experts_job.h"
#include "tests/layouts/training.h"
#include "tests/layouts/xla_programs.h"
#include "tests/layouts/xla_runs.h"

namespace troupe {
namespace {

v1::JobSpec Job(const Layout& layout) { return SmallJob(layout, SmallDataPrefix(), kXlaSteps); }

using XlaLayouts = WithXla<testing::TestWithParam<AxisUses>>;

TEST_P(XlaLayouts, HaveTheLossesOfOneRankOnTheCpu) {
  v1::JobSpec job = Job({});
  SetAxes(GetParam(), job.mutable_parallelism());
  ExpectLossesOfOneRank(OnXla(), job, Job({}));
}

const auto kName = [](const auto& info) { return NameOf(info.param); };

INSTANTIATE_TEST_SUITE_P(OneRank, XlaLayouts, testing::Values(AxisUses{}), kName);
INSTANTIATE_TEST_SUITE_P(Alone, XlaLayouts,
                         RowsOf(AxesAlone(), 2,
                                {{{"TensorRows", 2}}, {{"Zero3", 2}}, {{"Ring", 2}}}),
                         kName);
INSTANTIATE_TEST_SUITE_P(Pairs, XlaLayouts, RowsOf(PairsOfAxes(), 12), kName);
INSTANTIATE_TEST_SUITE_P(EightRanks, XlaLayouts, RowsOf(MixesOfEight(), 4), kName);

using XlaSgd = WithXla<>;

TEST_F(XlaSgd, HasTheLossesOfOneRankOnTheCpu) {
  for (const Layout& layout :
       {Layout{}, Layout{.tensor = 2}, Layout{.shard = 2, .zero_stage = 3}}) {
    const auto job = [](const Layout& of) {
      v1::JobSpec spec = Job(of);
      spec.clear_optimizer();
      spec.mutable_optimizer()->set_name("sgd");
      spec.mutable_optimizer()->set_lr(0.1);
      spec.mutable_optimizer()->set_momentum(0.9);
      spec.mutable_optimizer()->set_nesterov(true);
      return spec;
    };
    ExpectLossesOfOneRank(OnXla(), job(layout), job({}));
  }
}

using XlaFrozen = WithXla<>;

TEST_F(XlaFrozen, HasTheLossesOfOneRankOnTheCpu) {
  const TemporaryDirectory folder;
  const std::string base = folder.Child("base");
  (void)RunOrDie(Job({}), {.steps = 2, .save_path = base});
  const auto job = [&](const Layout& layout) {
    v1::JobSpec spec = Job(layout);
    spec.mutable_checkpoint()->set_initial_load(base);
    for (const char* const glob : {"model.layers.1.*", "model.norm.weight"})
      spec.mutable_model()->add_trainable(glob);
    return spec;
  };
  const std::vector<StepResult> expected = RunOrDie(job({}), {.steps = 6, .restore_path = base});
  TrainOptions options = OnXla();
  options.steps = 6;
  options.restore_path = base;
  for (const Layout& layout :
       {Layout{}, Layout{.tensor = 2}, Layout{.pipe = 2}, Layout{.shard = 2, .zero_stage = 3}})
    ExpectClose(Prepared(RunOrDie, job(layout), options), expected);
}

struct Pipeline {
  ScheduleKind schedule;
  int tensor;
};

using XlaSchedules = WithXla<testing::TestWithParam<Pipeline>>;

TEST_P(XlaSchedules, HaveTheLossesOfOneRankOnTheCpu) {
  const auto& [schedule, tensor] = GetParam();
  ExpectLossesOfOneRank(OnXla(), Job({.tensor = tensor, .pipe = 2, .schedule = Name(schedule)}),
                        Job({}));
}

std::vector<Pipeline> Pipelines() {
  std::vector<Pipeline> pipelines;
  for (const ScheduleKind schedule : kScheduleKinds) {
    for (const int tensor : {1, 2}) pipelines.push_back({schedule, tensor});
  }
  return pipelines;
}

INSTANTIATE_TEST_SUITE_P(Every, XlaSchedules,
                         RowsOf(Pipelines(), 2, {{ScheduleKind::kZeroBubbleH1, 1}}),
                         [](const auto& info) {
                           return fmt::format("{}Tensor{}", Name(info.param.schedule),
                                              info.param.tensor);
                         });

using XlaWholeSteps = WithXla<>;
using XlaRuns = WithXla<>;

constexpr kernels::xla::StepUse kWholeStep = {.single_microbatch = true, .reads_gradients = false};

// A step of one microbatch: one program, cut at the collectives.
TEST_F(XlaWholeSteps, OfOneMicrobatchHaveTheLossesOfOneRankOnTheCpu) {
  const auto job = [](const Layout& layout) {
    v1::JobSpec spec = Job(layout);
    spec.mutable_training()->set_global_batch_size(2);
    return spec;
  };
  const std::vector<StepResult> expected = RunOrDie(job({}), {.steps = kXlaSteps});
  std::vector<Layout> layouts = {
      {.shard = 2, .zero_stage = 3}, {.data = 2}, {.shard = 2, .zero_stage = 2}};
  if (kInstrumented) layouts.resize(1);
  for (const Layout& layout : layouts) {
    ExpectClose(Prepared(RunOrDie, job(layout), OnXla(kWholeStep)), expected);
  }
}

TEST_F(XlaRuns, UpdateWithAGradientOfZeroInStepsWithoutATarget) {
  const v1::JobSpec spec = WithFewTargets(Job({}));
  const std::vector<StepResult> expected = RunOrDie(spec, {.steps = kFewTargetsSteps});
  ExpectStepsWithoutATarget(expected);
  TrainOptions options = OnXla();
  options.steps = kFewTargetsSteps;
  const auto steps = RunOrDie(spec, options);
  ExpectStepsWithoutATarget(steps);
  ExpectClose(steps, expected);
}

// The same norms of blocks as on the CPU, for which a whole step keeps its gradients.
TEST_F(XlaWholeSteps, ReportNormsOfBlocks) {
  v1::JobSpec spec = Job({});
  spec.mutable_training()->set_global_batch_size(1);
  spec.mutable_training()->set_norms_interval(2);
  const auto expected = RunOrDie(spec, {.steps = 4});
  TrainOptions options = OnXla({.single_microbatch = true, .reads_gradients = true});
  options.steps = 4;
  const auto steps = Prepared(RunOrDie, spec, options);
  const auto &norms = steps[1].event.norms(), &on_cpu = expected[1].event.norms();
  ASSERT_EQ(norms.size(), on_cpu.size());
  for (int i = 0; i < norms.size(); ++i) {
    EXPECT_GT(norms[i].gradient(), 0) << norms[i].block();
    EXPECT_NEAR(norms[i].gradient() / on_cpu[i].gradient(), 1, 1e-5) << norms[i].block();
  }
}

// Writes `number` into the weights of `name`, where this rank has them.
void Rig(Executor& executor, const std::string& name, float number) {
  for (const model::ParameterEntry& entry : executor.program().parameters) {
    const model::Value& value = executor.program().value(entry.value);
    if (value.name != name) continue;
    const std::vector<float> numbers(static_cast<size_t>(value.elements()), number);
    TROUPE_CHECK_OK(executor.executable().Write(entry.value, 0, std::as_bytes(std::span(numbers))));
    TROUPE_CHECK_OK(executor.executable().RunInitialize());
  }
}

Status StatusOfRigged(const v1::JobSpec& spec, const kernels::xla::StepUse& use, float number) {
  TrainOptions options = OnXla(use);
  options.steps = 2;
  options.before_steps = [&](int, Executor& executor) {
    Rig(executor, "block1.mlp.gate_up_proj", number);
  };
  return Train(spec, options).statuses[0];
}

TEST_F(XlaRuns, NameWhatIsNotFinite) {
  const v1::JobSpec spec = Job({});
  const Status status = StatusOfRigged(spec, {}, 3e38f);
  EXPECT_EQ(status.code(), StatusCode::kOutOfRange) << status;
  EXPECT_THAT(std::string(Message(status)), testing::HasSubstr("rank 0: "));
}

TEST_F(XlaWholeSteps, NameAWeightOrTheLossThatIsNotFinite) {
  v1::JobSpec spec = Job({});
  spec.mutable_training()->set_global_batch_size(1);
  const Status weight = StatusOfRigged(spec, kWholeStep, std::nanf(""));
  EXPECT_EQ(weight.code(), StatusCode::kOutOfRange) << weight;
  EXPECT_THAT(std::string(Message(weight)),
              testing::HasSubstr("rank 0: the weight model.layers.0.mlp."));
  const Status loss = StatusOfRigged(spec, kWholeStep, 3e38f);
  EXPECT_EQ(loss.code(), StatusCode::kOutOfRange) << loss;
  EXPECT_THAT(std::string(Message(loss)), testing::HasSubstr("rank 0: the loss is not finite"));
}

TEST_F(XlaRuns, RepeatedRunsHaveTheSameBits) {
  const v1::JobSpec job = Job({.tensor = 2, .shard = 2});
  ExpectIdentical(RunOrDie(job, OnXla()), RunOrDie(job, OnXla()));
}

// Layouts whose programs are cut at other collectives.
TEST_F(XlaRuns, OfOtherLayoutsHaveTheSameBitsToo) {
  std::vector<v1::JobSpec> jobs = {Job({.context = 2}), Job({.shard = 2, .zero_stage = 3}),
                                   Job({.tensor = 2, .pipe = 2, .schedule = "ZBH1"}),
                                   Mixture({.expert = 2}, kXlaSteps)};
  if (kInstrumented) jobs.resize(1);
  for (const v1::JobSpec& job : jobs)
    ExpectIdentical(RunOrDie(job, OnXla()), RunOrDie(job, OnXla()));
}

}  // namespace
}  // namespace troupe
