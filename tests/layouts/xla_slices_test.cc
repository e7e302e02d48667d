// Compares layouts whose ranks are the partitions of one program of XLA's CPU plugin, one slice for
// each pipeline stage, with one rank on the CPU backend. The ranks are threads. Without the plugin
// every test is skipped with the reason.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/temporary_directory.h"
#include "kernels/xla/testing/slice_backend.h"
#include "tests/layouts/axis_table.h"
#include "tests/layouts/expect_steps.h"
#include "tests/layouts/experts_job.h"
#include "tests/layouts/training.h"
#include "tests/layouts/xla_programs.h"
#include "tests/layouts/xla_runs.h"

namespace troupe {
namespace {

using kernels::xla::SliceMeeting;
using kernels::xla::StepUse;
using testing::Each;
using testing::HasSubstr;

TrainOptions OnSlices(const StepUse& use = {}) {
  static SliceMeeting& meeting = *new SliceMeeting();
  TrainOptions options;
  options.steps = kXlaSteps;
  options.make_backend = [use](int) -> StatusOr<std::unique_ptr<kernels::Backend>> {
    TROUPE_ASSIGN_OR_RETURN(kernels::xla::ProgramCache* const programs, XlaPrograms());
    return kernels::xla::MakeSliceBackend(*programs, meeting, use);
  };
  return options;
}

// Compilation takes most of the time: the model has one block of each kind.
v1::JobSpec Job(const Layout& layout) {
  v1::JobSpec spec = SmallJob(layout, SmallDataPrefix(), kXlaSteps);
  spec.mutable_model()->set_pattern("AD");
  return spec;
}

v1::JobSpec SmallMixture(const Spread& spread) {
  v1::JobSpec spec = Mixture(spread, kXlaSteps);
  spec.mutable_model()->set_pattern("AE");
  return spec;
}

const auto kName = [](const auto& info) { return NameOf(info.param); };

using XlaSlices = WithXla<testing::TestWithParam<AxisUses>>;

TEST_P(XlaSlices, HaveTheLossesOfOneRankOnTheCpu) {
  v1::JobSpec job = SmallJob({}, SmallDataPrefix(), kXlaSteps);
  const v1::JobSpec alone = job;
  SetAxes(GetParam(), job.mutable_parallelism());
  ExpectLossesOfOneRank(OnSlices(), job, alone);
}

// The plugin has four devices.
INSTANTIATE_TEST_SUITE_P(Alone, XlaSlices, RowsOf(RowsOfSlices(AxesAlone()), 3), kName);
INSTANTIATE_TEST_SUITE_P(Pairs, XlaSlices,
                         RowsOf(RowsOfSlices(PairsOfAxes()), 11,
                                {{{"Zero3", 2}, {"Tensor", 2}}, {{"Tensor", 2}, {"Pipe", 2}}}),
                         kName);

// A step of one microbatch is one program.
constexpr StepUse kSingleMicrobatch = {.single_microbatch = true, .reads_gradients = false};

struct Case {
  const char* name;
  Layout layout;

  friend void PrintTo(const Case& of, std::ostream* out) { *out << of.name; }
};

using XlaWholeSteps = WithXla<>;
using XlaWholeStepLayouts = WithXla<testing::TestWithParam<Case>>;

TEST_P(XlaWholeStepLayouts, HaveTheLossesOfOneRankOnTheCpu) {
  const auto job = [](const Layout& layout) {
    v1::JobSpec spec = Job(layout);
    spec.mutable_training()->set_global_batch_size(2);
    return spec;
  };
  static const std::vector<StepResult> expected = RunOrDie(job({}), {.steps = kXlaSteps});
  v1::JobSpec spec = job(GetParam().layout);
  const int samples = GetParam().layout.data * GetParam().layout.shard;
  spec.mutable_training()->set_micro_batch_size(2 / samples);
  ExpectClose(Prepared(RunOrDie, spec, OnSlices(kSingleMicrobatch)), expected);
}

// Compute copies are converted within the program, and evaluations between the steps use others.
TEST_F(XlaWholeSteps, HaveTheNumbersOfStepsInPieces) {
  v1::JobSpec spec = Job({.tensor = 2, .shard = 2, .zero_stage = 1});
  spec.mutable_training()->set_global_batch_size(2);
  spec.mutable_training()->set_compute_dtype("bfloat16");
  spec.mutable_training()->set_validation_interval(3);
  spec.mutable_data()->set_validation_fraction(0.2);
  const auto pieces = RunOrDie(spec, OnSlices());
  const auto whole = RunOrDie(spec, OnSlices(kSingleMicrobatch));
  ASSERT_EQ(whole.size(), pieces.size());
  bool validated = false;
  for (size_t i = 0; i < whole.size(); ++i) {
    const v1::StepEvent &event = whole[i].event, &expected = pieces[i].event;
    EXPECT_NEAR(event.loss() / expected.loss(), 1, 1e-3) << whole[i].step;
    EXPECT_EQ(event.has_validation_loss(), expected.has_validation_loss());
    if (!event.has_validation_loss()) continue;
    validated = true;
    EXPECT_NEAR(event.validation_loss() / expected.validation_loss(), 1, 1e-3) << whole[i].step;
  }
  EXPECT_TRUE(validated);
}

std::vector<Case> WholeSteps() {
  if (kInstrumented) return {{"Zero3Shard2Tensor2", {.tensor = 2, .shard = 2, .zero_stage = 3}}};
  return {{"OneRank", {}},
          {"Tensor2", {.tensor = 2}},
          {"Data2", {.data = 2}},
          {"Zero1Shard2", {.shard = 2, .zero_stage = 1}},
          {"Zero3Shard2", {.shard = 2, .zero_stage = 3}},
          {"Ring2", {.context = 2}},
          {"Zero3Shard2Tensor2", {.tensor = 2, .shard = 2, .zero_stage = 3}}};
}

INSTANTIATE_TEST_SUITE_P(Table, XlaWholeStepLayouts, testing::ValuesIn(WholeSteps()),
                         [](const auto& info) { return std::string(info.param.name); });

using XlaMixtureSlices = WithXla<testing::TestWithParam<Spread>>;

TEST_P(XlaMixtureSlices, HaveTheLossesOfOneRankOnTheCpu) {
  ExpectLossesOfOneRank(OnSlices(), Mixture(GetParam(), kXlaSteps), Mixture({}, kXlaSteps));
}

// Returns the spreads whose slices of several ranks fit onto the plugin's four devices.
std::vector<Spread> OnFourDevices(std::vector<Spread> table) {
  std::erase_if(table, [](const Spread& spread) {
    return spread.ranks() > 4 || spread.ranks() == spread.pipe;
  });
  return table;
}

INSTANTIATE_TEST_SUITE_P(OneAxis, XlaMixtureSlices,
                         RowsOf(OnFourDevices(MixturesOfOneAxis()), 4, {{.expert = 2}}), kName);
INSTANTIATE_TEST_SUITE_P(TwoAxes, XlaMixtureSlices, RowsOf(OnFourDevices(MixturesOfTwoAxes()), 8),
                         kName);
INSTANTIATE_TEST_SUITE_P(AllGather, XlaMixtureSlices,
                         RowsOf(OnFourDevices(MixturesThatGather()), 4), kName);
INSTANTIATE_TEST_SUITE_P(RingContext, XlaMixtureSlices, RowsOf(OnFourDevices(MixturesOnRings()), 4),
                         kName);

using XlaSliceRuns = WithXla<>;

TEST_F(XlaSliceRuns, HaveTheSameBitsWhenTheyAreRepeated) {
  const v1::JobSpec job = Job({.tensor = 2, .shard = 2, .zero_stage = 3});
  ExpectIdentical(RunOrDie(job, OnSlices()), RunOrDie(job, OnSlices()));
}

// The steps of rank 0, and the seconds of host collectives of each purpose on all ranks together.
struct SliceRun {
  std::vector<StepResult> steps;
  std::array<double, kPurposes> on_hosts = {};
};

SliceRun RunOnSlices(const v1::JobSpec& job) {
  TrainResult result = Train(job, OnSlices());
  SliceRun run{std::move(result.steps[0])};
  for (size_t rank = 0; rank < result.statuses.size(); ++rank) {
    EXPECT_TRUE(result.statuses[rank].ok()) << result.statuses[rank];
    for (size_t p = 0; p < run.on_hosts.size(); ++p)
      run.on_hosts[p] += result.communication[rank][p].total;
  }
  return run;
}

// Programs of one stage get no communicator (slice_backend.h). What remains are the agreements of
// executors, outside of programs.
TEST_F(XlaSliceRuns, UseNoCollectiveOfTheHost) {
  SliceRun run = RunOnSlices(Job({.tensor = 2, .shard = 2, .zero_stage = 3}));
  run.on_hosts[static_cast<size_t>(Purpose::kControl)] = 0;
  EXPECT_THAT(run.on_hosts, Each(0));
}

// Activations, the gradient of a tied embedding and the control word leave a stage.
TEST_F(XlaSliceRuns, UseTheHostForWhatLeavesAStage) {
  const auto job = [](const Layout& layout) {
    v1::JobSpec spec = SmallJob(layout, SmallDataPrefix(), kXlaSteps);
    spec.mutable_model()->set_tie_word_embeddings(true);
    return spec;
  };
  const SliceRun run = RunOnSlices(job({.tensor = 2, .pipe = 2, .schedule = "ZBH1"}));
  ExpectClose(run.steps, RunOrDie(job({}), {.steps = kXlaSteps}));
  for (const Purpose purpose : {Purpose::kPipe, Purpose::kGradient, Purpose::kControl})
    EXPECT_GT(run.on_hosts[static_cast<size_t>(purpose)], 0) << Name(purpose);
  EXPECT_EQ(run.on_hosts[static_cast<size_t>(Purpose::kTensor)], 0);
}

// Rows that dropout numbers differ between the ranks; validation runs parts of the pieces.
TEST_F(XlaSliceRuns, DropWhatOneRankDropsAndHaveItsValidationLoss) {
  const auto job = [](const Layout& layout) {
    v1::JobSpec spec = Job(layout);
    spec.mutable_model()->set_hidden_dropout(0.2);
    spec.mutable_data()->set_validation_fraction(0.1);
    return spec;
  };
  const auto expected = RunOrDie(job({}), {.steps = kXlaSteps});
  const auto actual = RunOrDie(job({.tensor = 2, .context = 2, .by_rows = true}), OnSlices());
  ExpectClose(actual, expected);
  EXPECT_NEAR(actual.back().event.validation_loss(), expected.back().event.validation_loss(),
              1e-6 * expected.back().event.validation_loss());
}

// Blocks of the vocabulary, 259, have other sizes before and after.
TEST_F(XlaSliceRuns, ContinueFromACheckpointOfAnotherLayout) {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/checkpoint";
  TrainOptions before = OnSlices(), after = {.steps = kXlaSteps / 2, .restore_path = path};
  before.steps = kXlaSteps / 2;
  before.save_path = path;
  RunOrDie(Job({.tensor = 4}), before);
  const std::vector<StepResult> expected = RunOrDie(Job({}), after);
  after.make_backend = OnSlices().make_backend;
  ExpectClose(RunOrDie(Job({.shard = 2, .zero_stage = 3}), after), expected);
}

// A step that is not finite on one rank of a slice.
constexpr size_t kSkipped = 2;

// The value of a parameter that tensor 2 divides.
const model::ParameterEntry& Divided(Executor& executor) {
  const auto& parameters = executor.program().parameters;
  const auto found = std::ranges::find_if(parameters, [&](const model::ParameterEntry& entry) {
    return executor.program().value(entry.value).name == "block1.mlp.gate_up_proj";
  });
  TROUPE_CHECK(found != parameters.end(), "the job has another model");
  return *found;
}

// Makes the gradient of one rank in one step NaN. The others write theirs too: the ranks of a slice
// must run the same programs, and what reads a gradient runs a reduction that waits.
TrainOptions WithNanGradient(TrainOptions options, int poisoned) {
  options.before_update = [poisoned](int rank, Executor& executor) {
    if (executor.applied_step() != static_cast<int64_t>(kSkipped)) return;
    const model::ValueId gradient = Divided(executor).reduced_gradient;
    std::vector<float> numbers(static_cast<size_t>(executor.program().value(gradient).elements()));
    TROUPE_CHECK_OK(
        executor.executable().Read(gradient, 0, std::as_writable_bytes(std::span(numbers))));
    if (rank == poisoned) numbers[1] = std::nanf("");
    TROUPE_CHECK_OK(executor.executable().Write(gradient, 0, std::as_bytes(std::span(numbers))));
  };
  return options;
}

// Makes a weight of one rank NaN before one step, and what it was after it.
TrainOptions WithNanWeight(TrainOptions options, int poisoned) {
  const auto kept = std::make_shared<std::vector<float>>();
  options.after_step = [=](int rank, Executor& executor, const StepResult& result) {
    const auto step = static_cast<size_t>(result.step);
    if (step != kSkipped && step != kSkipped + 1) return;
    const model::ValueId weight = Divided(executor).value;
    if (rank == poisoned && step == kSkipped) {
      kept->resize(static_cast<size_t>(executor.program().value(weight).elements()));
      TROUPE_CHECK_OK(
          executor.executable().Read(weight, 0, std::as_writable_bytes(std::span(*kept))));
    }
    if (rank == poisoned) {
      std::vector<float> numbers = *kept;
      if (step == kSkipped) numbers[1] = std::nanf("");
      TROUPE_CHECK_OK(executor.executable().Write(weight, 0, std::as_bytes(std::span(numbers))));
    }
    TROUPE_CHECK_OK(executor.executable().RunInitialize());
  };
  return options;
}

// Every rank skips that step and no other, and the others have the expected numbers.
void ExpectSkip(const TrainResult& actual, const TrainResult& expected) {
  const auto others = [](std::vector<StepResult> steps) {
    steps.erase(steps.begin() + kSkipped);
    return steps;
  };
  for (size_t rank = 0; rank < actual.statuses.size(); ++rank) {
    ASSERT_TRUE(actual.statuses[rank].ok()) << actual.statuses[rank];
    const std::vector<StepResult>& steps = actual.steps[rank];
    ASSERT_EQ(steps.size(), static_cast<size_t>(kXlaSteps));
    for (size_t i = 0; i < steps.size(); ++i) {
      EXPECT_EQ(steps[i].event.skipped(), i == kSkipped) << "step " << steps[i].step;
      EXPECT_EQ(expected.steps[0][i].event.skipped(), i == kSkipped);
    }
    EXPECT_THAT(steps[kSkipped].nonfinite, HasSubstr("rank 1"));
    ExpectClose(others(steps), others(expected.steps[0]));
  }
}

v1::JobSpec SkippingJob(const Layout& layout) {
  v1::JobSpec spec = Job(layout);
  spec.mutable_training()->set_on_nonfinite("skip_step");
  return spec;
}

// Rank 0 learns of the gradient of rank 1 from the control word alone. Sums that are read before
// the update are programs of their own, so that this run compiles more than others.
TEST_F(XlaSliceRuns, SkipAStepWhoseGradientIsNotFiniteOnOneRank) {
  const TrainResult expected = Train(SkippingJob({}), WithNanGradient({.steps = kXlaSteps}, 0));
  ASSERT_TRUE(expected.statuses[0].ok()) << expected.statuses[0];
  ExpectSkip(Train(SkippingJob({.tensor = 2}), WithNanGradient(OnSlices(), 1)), expected);
}

// A step in pieces, and one that is one program.
TEST_F(XlaSliceRuns, SkipAStepThatIsNotFiniteWithTheProgramsOfTheOthers) {
  for (const StepUse& use : {StepUse{}, kSingleMicrobatch}) {
    const auto job = [&](const Layout& layout) {
      v1::JobSpec spec = SkippingJob(layout);
      if (!use.single_microbatch) return spec;
      spec.mutable_training()->set_global_batch_size(2);
      spec.mutable_training()->set_micro_batch_size(2);
      return spec;
    };
    const TrainResult expected = Train(job({}), WithNanWeight({.steps = kXlaSteps}, 0));
    ASSERT_TRUE(expected.statuses[0].ok()) << expected.statuses[0];
    ExpectSkip(Prepared(Train, job({.tensor = 2}), WithNanWeight(OnSlices(use), 1)), expected);
  }
}

// Layouts with other collectives than the one above.
TEST_F(XlaSliceRuns, OfOtherLayoutsHaveTheSameBitsToo) {
  std::vector<Layout> layouts = {{.data = 2, .context = 2},
                                 {.tensor = 2, .context = 2, .by_rows = true},
                                 {.tensor = 2, .pipe = 2},
                                 {.context = 4, .exchanges_heads = true},
                                 {.shard = 4, .zero_stage = 2}};
  if (kInstrumented) layouts.resize(1);
  for (const Layout& layout : layouts) {
    const v1::JobSpec job = Job(layout);
    ExpectIdentical(RunOrDie(job, OnSlices()), RunOrDie(job, OnSlices()));
  }
}

TEST_F(XlaSliceRuns, OfAMixtureHaveTheSameBitsWhenTheyAreRepeated) {
  const v1::JobSpec job = SmallMixture({.expert = 2});
  ExpectIdentical(RunOrDie(job, OnSlices()), RunOrDie(job, OnSlices()));
}

}  // namespace
}  // namespace troupe
