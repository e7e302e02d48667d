// Compares layouts whose ranks are the partitions of one program of XLA's CPU plugin, one slice for
// each pipeline stage, with one rank on the CPU backend. The ranks are threads. Without the plugin
// every test is skipped with the reason.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "kernels/xla/pjrt/plugin_path.h"
#include "kernels/xla/testing/slice_backend.h"
#include "tests/layouts/expect_steps.h"
#include "tests/layouts/experts_job.h"
#include "tests/layouts/training.h"

namespace troupe {
namespace {

using kernels::xla::ProgramCache;
using kernels::xla::SliceMeeting;

constexpr int64_t kSteps = kInstrumented ? 6 : 20;

// A process has one client of a plugin. The compiler's time counts here, not the programs'.
StatusOr<ProgramCache*> Programs() {
  using Made = StatusOr<std::unique_ptr<kernels::xla::Client>>;
  // Never destroyed: the plugin's own statics end before those of this program.
  static const Made& client = *new Made([]() -> Made {
    TROUPE_ASSIGN_OR_RETURN(const std::string path, kernels::xla::FindPlugin(""));
    return kernels::xla::Client::Make(path, 1);
  }());
  TROUPE_RETURN_IF_ERROR(client.status());
  static ProgramCache& programs = *new ProgramCache(
      **client,
      {{"xla_backend_optimization_level", int64_t{0}}, {"xla_cpu_use_fusion_emitters", false}});
  return &programs;
}

TrainOptions OnSlices() {
  static SliceMeeting& meeting = *new SliceMeeting();
  TrainOptions options;
  options.steps = kSteps;
  options.make_backend = [](int) -> StatusOr<std::unique_ptr<kernels::Backend>> {
    TROUPE_ASSIGN_OR_RETURN(ProgramCache* const programs, Programs());
    return kernels::xla::MakeSliceBackend(*programs, meeting);
  };
  return options;
}

v1::JobSpec Job(const Layout& layout) { return SmallJob(layout, SmallDataPrefix(), kSteps); }

struct Case {
  const char* name;
  Layout layout;
};

class XlaSlices : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (const auto programs = Programs(); !programs.ok()) GTEST_SKIP() << programs.status();
  }
};

TEST_P(XlaSlices, HaveTheLossesOfOneRankOnTheCpu) {
  static const std::vector<StepResult> expected = RunOrDie(Job({}), {.steps = kSteps});
  ExpectClose(RunOrDie(Job(GetParam().layout), OnSlices()), expected);
}

std::vector<Case> Cases() {
  return {{"Tensor2", {.tensor = 2}},
          {"Tensor4", {.tensor = 4}},
          {"Tensor2Rows", {.tensor = 2, .by_rows = true}},
          {"Data2", {.data = 2}},
          {"Data4", {.data = 4}},
          {"Zero1Shard2", {.shard = 2, .zero_stage = 1}},
          {"Zero1Shard4", {.shard = 4, .zero_stage = 1}},
          {"Zero2Shard2", {.shard = 2, .zero_stage = 2}},
          {"Zero2Shard4", {.shard = 4, .zero_stage = 2}},
          {"Zero3Shard2", {.shard = 2, .zero_stage = 3}},
          {"Zero3Shard4", {.shard = 4, .zero_stage = 3}},
          {"Ring2", {.context = 2}},
          {"Ring4", {.context = 4}},
          {"Heads2", {.context = 2, .exchanges_heads = true}},
          {"Heads4", {.context = 4, .exchanges_heads = true}},
          {"Zero3Shard2Tensor2", {.tensor = 2, .shard = 2, .zero_stage = 3}},
          {"Tensor2Pipe2", {.tensor = 2, .pipe = 2}},
          {"Data2Ring2", {.data = 2, .context = 2}}};
}

INSTANTIATE_TEST_SUITE_P(Table, XlaSlices, testing::ValuesIn(Cases()),
                         [](const auto& info) { return std::string(info.param.name); });

class XlaMixtureSlices : public testing::TestWithParam<Spread> {
 protected:
  void SetUp() override {
    if (const auto programs = Programs(); !programs.ok()) GTEST_SKIP() << programs.status();
  }
};

TEST_P(XlaMixtureSlices, HaveTheLossesOfOneRankOnTheCpu) {
  static const std::vector<StepResult> expected = RunOrDie(Mixture({}, kSteps), {.steps = kSteps});
  ExpectClose(RunOrDie(Mixture(GetParam(), kSteps), OnSlices()), expected);
}

std::vector<Spread> Spreads() {
  return {{.expert = 2},
          {.expert = 2, .gathers = true},
          {.expert = 4},
          {.expert = 4, .gathers = true},
          {.expert = 2, .tensor = 2, .by_rows = true}};
}

INSTANTIATE_TEST_SUITE_P(Table, XlaMixtureSlices, testing::ValuesIn(Spreads()),
                         [](const auto& info) { return NameOf(info.param); });

}  // namespace
}  // namespace troupe
