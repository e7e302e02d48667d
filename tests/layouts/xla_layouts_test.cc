// Compares layouts of several ranks (threads) on XLA's CPU plugin with one rank on the CPU backend.
// Without the plugin every test is skipped with the reason.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "kernels/xla/runtime/xla_backend.h"
#include "tests/layouts/expect_steps.h"
#include "tests/layouts/experts_job.h"
#include "tests/layouts/training.h"
#include "tests/layouts/xla_programs.h"

namespace troupe {
namespace {

constexpr int64_t kSteps = kInstrumented ? 6 : 20;

std::vector<std::string> CompiledPrograms() { return (*XlaPrograms())->compilation().programs; }

TrainOptions OnXla(const kernels::xla::StepUse& use) {
  TrainOptions options;
  options.make_backend = [use](int) -> StatusOr<std::unique_ptr<kernels::Backend>> {
    TROUPE_ASSIGN_OR_RETURN(kernels::xla::ProgramCache* const programs, XlaPrograms());
    return kernels::xla::XlaBackend::Make(*programs, {.use = use});
  };
  return options;
}

// All programs are compiled before the first step.
std::vector<StepResult> RunOnXla(const v1::JobSpec& spec, const kernels::xla::StepUse& use = {},
                                 int64_t steps_to_run = kSteps) {
  TrainOptions options = OnXla(use);
  std::atomic<size_t> prepared = 0;
  options.before_steps = [&](int, Executor&) { prepared = CompiledPrograms().size(); };
  options.steps = steps_to_run;
  std::vector<StepResult> steps = RunOrDie(spec, options);
  const std::vector<std::string> programs = CompiledPrograms();
  EXPECT_EQ(programs.size(), prepared) << "compiled in a step: " << programs.back();
  return steps;
}

struct Case {
  const char* name;
  Layout layout;
};

class XlaLayouts : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (const auto programs = XlaPrograms(); !programs.ok()) GTEST_SKIP() << programs.status();
  }
};

v1::JobSpec Job(const Layout& layout) { return SmallJob(layout, SmallDataPrefix(), kSteps); }

TEST_P(XlaLayouts, HaveTheLossesOfOneRankOnTheCpu) {
  static const std::vector<StepResult> expected = RunOrDie(Job({}), {.steps = kSteps});
  ExpectClose(RunOnXla(Job(GetParam().layout)), expected);
}

constexpr kernels::xla::StepUse kWholeStep = {.single_microbatch = true, .reads_gradients = false};

// A step of one microbatch: one program, cut at the collectives.
TEST(XlaWholeSteps, OfOneMicrobatchHaveTheLossesOfOneRankOnTheCpu) {
  if (const auto programs = XlaPrograms(); !programs.ok()) GTEST_SKIP() << programs.status();
  const auto job = [](const Layout& layout) {
    v1::JobSpec spec = Job(layout);
    spec.mutable_training()->set_global_batch_size(2);
    return spec;
  };
  const std::vector<StepResult> expected = RunOrDie(job({}), {.steps = kSteps});
  std::vector<Layout> layouts = {
      {.shard = 2, .zero_stage = 3}, {.data = 2}, {.shard = 2, .zero_stage = 2}};
  if (kInstrumented) layouts.resize(1);
  for (const Layout& layout : layouts) {
    ExpectClose(RunOnXla(job(layout), kWholeStep), expected);
  }
}

// The same norms of blocks as on the CPU, for which a whole step keeps its gradients.
TEST(XlaWholeSteps, ReportNormsOfBlocks) {
  if (const auto programs = XlaPrograms(); !programs.ok()) GTEST_SKIP() << programs.status();
  v1::JobSpec spec = Job({});
  spec.mutable_training()->set_global_batch_size(1);
  spec.mutable_training()->set_norms_interval(2);
  const auto expected = RunOrDie(spec, {.steps = 4});
  const auto steps = RunOnXla(spec, {.single_microbatch = true, .reads_gradients = true}, 4);
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

TEST(XlaRuns, NameWhatIsNotFinite) {
  if (const auto programs = XlaPrograms(); !programs.ok()) GTEST_SKIP() << programs.status();
  const v1::JobSpec spec = Job({});
  const Status status = StatusOfRigged(spec, {}, 3e38f);
  EXPECT_EQ(status.code(), StatusCode::kOutOfRange) << status;
  EXPECT_THAT(std::string(Message(status)), testing::HasSubstr("rank 0: "));
}

TEST(XlaWholeSteps, NameAWeightOrTheLossThatIsNotFinite) {
  if (const auto programs = XlaPrograms(); !programs.ok()) GTEST_SKIP() << programs.status();
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

// A sanitizer makes compilation several times slower: there, one layout of each kind is run.
std::vector<Case> Cases() {
  if (kInstrumented) {
    return {{"Tensor2Rows", {.tensor = 2, .by_rows = true}},
            {"Pipe2ZBH1", {.pipe = 2, .schedule = "ZBH1"}},
            {"Zero3Shard2", {.shard = 2, .zero_stage = 3}},
            {"Ring2", {.context = 2}}};
  }
  return {{"One", {}},
          {"Data2", {.data = 2}},
          {"Data4", {.data = 4}},
          {"Tensor2", {.tensor = 2}},
          {"Tensor4", {.tensor = 4}},
          {"Tensor2Rows", {.tensor = 2, .by_rows = true}},
          {"Pipe2", {.pipe = 2}},
          {"Pipe4", {.pipe = 4}},
          {"Pipe2GPipe", {.pipe = 2, .schedule = "GPipe"}},
          {"Pipe2ZBH1", {.pipe = 2, .schedule = "ZBH1"}},
          {"Zero1Shard2", {.shard = 2, .zero_stage = 1}},
          {"Zero2Shard2", {.shard = 2, .zero_stage = 2}},
          {"Zero3Shard2", {.shard = 2, .zero_stage = 3}},
          {"Zero3Shard4", {.shard = 4, .zero_stage = 3}},
          {"Ring2", {.context = 2}},
          {"Heads2", {.context = 2, .exchanges_heads = true}},
          {"Zero3Shard2Tensor2", {.tensor = 2, .shard = 2, .zero_stage = 3}},
          {"Tensor2Pipe2", {.tensor = 2, .pipe = 2}},
          {"Tensor2Pipe2DualPipeV", {.tensor = 2, .pipe = 2, .schedule = "DualPipeV"}},
          {"Data2Ring2", {.data = 2, .context = 2}}};
}

INSTANTIATE_TEST_SUITE_P(Table, XlaLayouts, testing::ValuesIn(Cases()),
                         [](const auto& info) { return std::string(info.param.name); });

class XlaMixtures : public testing::TestWithParam<Spread> {
 protected:
  void SetUp() override {
    if (const auto programs = XlaPrograms(); !programs.ok()) GTEST_SKIP() << programs.status();
  }
};

TEST_P(XlaMixtures, HaveTheLossesOfOneRankOnTheCpu) {
  static const std::vector<StepResult> expected = RunOrDie(Mixture({}, kSteps), {.steps = kSteps});
  ExpectClose(RunOnXla(Mixture(GetParam(), kSteps)), expected);
}

std::vector<Spread> Spreads() {
  if (kInstrumented) return {{.expert = 2}};
  return {{},
          {.expert = 2},
          {.expert = 2, .gathers = true},
          {.expert = 4},
          {.expert = 2, .tensor = 2, .by_rows = true}};
}

INSTANTIATE_TEST_SUITE_P(Table, XlaMixtures, testing::ValuesIn(Spreads()),
                         [](const auto& info) { return NameOf(info.param); });

TEST(XlaRuns, RepeatedRunsHaveTheSameBits) {
  if (const auto programs = XlaPrograms(); !programs.ok()) GTEST_SKIP() << programs.status();
  const v1::JobSpec job = Job({.tensor = 2, .shard = 2});
  ExpectIdentical(RunOnXla(job), RunOnXla(job));
}

// Layouts whose programs are cut at other collectives.
TEST(XlaRuns, OfOtherLayoutsHaveTheSameBitsToo) {
  if (const auto programs = XlaPrograms(); !programs.ok()) GTEST_SKIP() << programs.status();
  std::vector<v1::JobSpec> jobs = {Job({.context = 2}), Job({.shard = 2, .zero_stage = 3}),
                                   Job({.tensor = 2, .pipe = 2, .schedule = "ZBH1"}),
                                   Mixture({.expert = 2}, kSteps)};
  if (kInstrumented) jobs.resize(1);
  for (const v1::JobSpec& job : jobs) ExpectIdentical(RunOnXla(job), RunOnXla(job));
}

}  // namespace
}  // namespace troupe
