// Tests reshard_after_forward: N under every layout: parameters gathered within groups of N
// neighbouring ranks equal the single rank's.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <utility>

#include "base/temporary_directory.h"
#include "plan/job/job_defaults.h"
#include "plan/validate/validate.h"
#include "tests/layouts/expect_steps.h"
#include "tests/layouts/experts_job.h"
#include "tests/layouts/training.h"

namespace troupe {
namespace {

struct Case {
  std::string name;
  Layout layout;
  int run = 2;
};

// Sixteen samples: four microbatches on each of four data ranks.
v1::JobSpec Job(const Layout& layout, int run, bool tied = false, int64_t steps = 20) {
  v1::JobSpec spec = SmallJob(layout, SmallDataPrefix(), steps);
  spec.mutable_training()->set_global_batch_size(layout.shard == 6 ? 12 : 16);
  spec.mutable_model()->set_tie_word_embeddings(tied);
  if (run > 0) spec.mutable_parallelism()->set_reshard_after_forward(std::to_string(run));
  EXPECT_TRUE(ValidateJobSpec(spec, JobPurpose::kPlan).ok())
      << ValidateJobSpec(spec, JobPurpose::kPlan);
  return spec;
}

// Returns the steps of a single rank, which runs once per process.
const std::vector<StepResult>& SingleRank(int64_t global_batch_size, bool tied) {
  static std::map<std::pair<int64_t, bool>, std::vector<StepResult>> all;
  std::vector<StepResult>& steps = all[{global_batch_size, tied}];
  if (steps.empty()) {
    v1::JobSpec spec = Job({}, 0, tied);
    spec.mutable_training()->set_global_batch_size(global_batch_size);
    steps = RunOrDie(spec);
  }
  return steps;
}

class ShardRunTable : public ::testing::TestWithParam<std::tuple<Case, bool>> {};

TEST_P(ShardRunTable, FirstTwentyLossesEqualTheSingleRanks) {
  const auto& [c, tied] = GetParam();
  const v1::JobSpec spread = Job(c.layout, c.run, tied);
  ExpectClose(RunOrDie(spread), SingleRank(spread.training().global_batch_size(), tied));
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, ShardRunTable,
    ::testing::Combine(
        ::testing::Values(
            Case{"Shard4Run2", {.shard = 4, .zero_stage = 3}},
            Case{"Shard6Run2", {.shard = 6, .zero_stage = 3}},
            Case{"Shard6Run3", {.shard = 6, .zero_stage = 3}, 3},
            Case{"Shard8Run4", {.shard = 8, .zero_stage = 3}, 4},
            Case{"Shard4Run2Tensor2", {.tensor = 2, .shard = 4, .zero_stage = 3}},
            Case{"Shard4Run2Tensor2Rows",
                 {.tensor = 2, .shard = 4, .zero_stage = 3, .by_rows = true}},
            Case{"Shard4Run2Data2", {.data = 2, .shard = 4, .zero_stage = 3}},
            Case{"Shard4Run2Context2", {.shard = 4, .zero_stage = 3, .context = 2}},
            Case{"Shard4Run2Pipe2", {.pipe = 2, .shard = 4, .zero_stage = 3}},
            Case{"Shard4Run2Pipe2ZbH1",
                 {.pipe = 2, .shard = 4, .zero_stage = 3, .schedule = "ZBH1"}},
            Case{"Shard4Run2Pipe2Zbv", {.pipe = 2, .shard = 4, .zero_stage = 3, .schedule = "ZBV"}},
            Case{"Shard4Run2Pipe2Tensor2", {.tensor = 2, .pipe = 2, .shard = 4, .zero_stage = 3}}),
        ::testing::Bool()),
    [](const auto& info) {
      return std::get<0>(info.param).name + (std::get<1>(info.param) ? "Tied" : "");
    });

class ShardRunsOfAMixture : public ::testing::TestWithParam<std::tuple<Spread, bool>> {};

TEST_P(ShardRunsOfAMixture, LossesEqualTheSingleRanks) {
  const auto job = [](const Spread& spread) {
    v1::JobSpec spec = Mixture(spread);
    spec.mutable_training()->set_global_batch_size(16);
    return spec;
  };
  const auto& [spread, whole_matrices] = GetParam();
  v1::JobSpec spec = job(spread);
  spec.mutable_parallelism()->set_reshard_after_forward("2");
  spec.mutable_parallelism()->set_shard_whole_matrices(whole_matrices);
  ExpectClose(RunOrDie(spec), RunOrDie(job({})));
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, ShardRunsOfAMixture,
    ::testing::Combine(
        ::testing::Values(Spread{.shard = 4}, Spread{.expert = 2, .shard = 4},
                          Spread{.expert = 2, .pipe = 2, .shard = 4},
                          Spread{.expert = 2, .tensor = 2, .shard = 4, .over_tensor = true}),
        ::testing::Bool()),
    [](const auto& info) {
      return NameOf(std::get<0>(info.param)) + (std::get<1>(info.param) ? "WholeMatrices" : "");
    });

TEST(ShardRuns, ARankWithoutRowsOfATensorStillTakesPart) {
  // Eight ranks share tensors with as few as four rows: each position in a group of four has one
  // row, and only one group has it.
  const auto narrow = [](const Layout& layout, int run) {
    v1::JobSpec spec = Job(layout, run);
    spec.mutable_model()->set_hidden_size(4);
    spec.mutable_model()->set_num_attention_heads(1);
    spec.mutable_model()->set_num_key_value_heads(1);
    spec.mutable_model()->set_head_dim(4);
    return spec;
  };
  ExpectClose(RunOrDie(narrow({.shard = 8, .zero_stage = 3}, 4)), RunOrDie(narrow({}, 0)));
}

TEST(ShardRuns, HeldOutLossIsThatOfTheUpdatedParameters) {
  const auto with_validation = [](const Layout& layout, int run) {
    v1::JobSpec spec = Job(layout, run, false, 4);
    spec.mutable_data()->set_validation_fraction(0.1);
    spec.mutable_training()->set_validation_interval(2);
    return spec;
  };
  const std::vector<StepResult> expected = RunOrDie(with_validation({}, 0), {.steps = 4});
  const std::vector<StepResult> actual =
      RunOrDie(with_validation({.shard = 4, .zero_stage = 3}, 2), {.steps = 4});
  int compared = 0;
  for (size_t i = 0; i < actual.size(); ++i) {
    ASSERT_EQ(actual[i].event.has_validation_loss(), expected[i].event.has_validation_loss());
    if (!actual[i].event.has_validation_loss()) continue;
    EXPECT_NEAR(actual[i].event.validation_loss(), expected[i].event.validation_loss(), 1e-5);
    ++compared;
  }
  EXPECT_EQ(compared, 3);
}

TEST(ShardRuns, OverlapChangesNoBit) {
  const v1::JobSpec spec = Job({.pipe = 2, .shard = 4, .zero_stage = 3}, 2);
  ExpectIdentical(RunOrDie(spec, {.steps = 6}), RunOrDie(spec, {.steps = 6, .overlap = false}));
}

// Copies in bf16 are the same whichever group gathers them, so the first loss is bit-identical;
// gradients are summed in a different order.
TEST(ShardRuns, InBfloat16FollowThoseOfAllShards) {
  const auto job = [](int run) {
    v1::JobSpec spec = Job({.shard = 4, .zero_stage = 3}, run);
    spec.mutable_training()->set_compute_dtype("bfloat16");
    return spec;
  };
  const std::vector<StepResult> all = RunOrDie(job(0)), runs = RunOrDie(job(2));
  ASSERT_EQ(runs.size(), all.size());
  EXPECT_EQ(runs[0].event.loss(), all[0].event.loss());
  for (size_t i = 0; i < runs.size(); ++i) {
    EXPECT_NEAR(runs[i].event.loss(), all[i].event.loss(), 1e-3 * all[i].event.loss()) << i;
    EXPECT_NEAR(runs[i].event.grad_norm(), all[i].event.grad_norm(),
                0.02 * all[i].event.grad_norm())
        << i;
  }
  EXPECT_LT(runs.back().event.loss(), runs.front().event.loss() - 0.1);
}

TEST(ShardRuns, GradientsThatTravelInBfloat16StayWithinATenthOfAPercent) {
  const auto job = [](const char* reduce) {
    v1::JobSpec spec = Job({.shard = 4, .zero_stage = 3}, 2);
    v1::MixedPrecision* const precision = spec.mutable_training()->mutable_mixed_precision();
    precision->set_param("float32");
    precision->set_reduce(reduce);
    precision->set_buffer("float32");
    return spec;
  };
  const std::vector<StepResult> exact = RunOrDie(job("float32")),
                                packed = RunOrDie(job("bfloat16"));
  bool differs = false;
  for (size_t i = 0; i < exact.size(); ++i) {
    EXPECT_NEAR(packed[i].event.loss(), exact[i].event.loss(), 1e-3 * exact[i].event.loss()) << i;
    differs |= packed[i].event.grad_norm() != exact[i].event.grad_norm();
  }
  EXPECT_TRUE(differs);
}

struct Place {
  std::string name;
  Layout layout;
  int run = 0;
  bool whole_matrices = false;
};
const Place kPlaces[] = {
    {"Single", {}},
    {"Shard4", {.shard = 4, .zero_stage = 3}},
    {"Shard4Run2", {.shard = 4, .zero_stage = 3}, 2},
    {"Shard8Run4", {.shard = 8, .zero_stage = 3}, 4},
    {"Tensor2Pipe2Shard4Run2", {.tensor = 2, .pipe = 2, .shard = 4, .zero_stage = 3}, 2},
    {"Shard2Zero1", {.shard = 2, .zero_stage = 1}},
    {"Shard2Zero1WholeMatrices", {.shard = 2, .zero_stage = 1}, 0, true},
    {"Tensor2Shard4Run2WholeMatrices", {.tensor = 2, .shard = 4, .zero_stage = 3}, 2, true}};

class ShardRunCheckpoints : public ::testing::TestWithParam<Place> {};

TEST_P(ShardRunCheckpoints, GoOnUnderEveryLayout) {
  const auto job = [](const Place& place) {
    v1::JobSpec spec = Job(place.layout, place.run, true, 6);
    spec.mutable_parallelism()->set_shard_whole_matrices(place.whole_matrices);
    return spec;
  };
  const auto after_three = [&job](const Place& place) {
    const std::vector<StepResult> steps = RunOrDie(job(place), {.steps = 6});
    return std::vector<StepResult>(steps.begin() + 3, steps.end());
  };
  const Place& source = GetParam();
  const TemporaryDirectory folder;
  const std::string attempt = folder.Child("step-00000003-epoch-1-attempt-1");
  RunOrDie(job(source), {.steps = 3, .save_path = attempt});
  const std::vector<StepResult> single = after_three(kPlaces[0]);
  for (const Place& target : kPlaces) {
    // reshard_table_test covers layouts without groups or whole matrices.
    if (source.run == 0 && target.run == 0 && !source.whole_matrices && !target.whole_matrices)
      continue;
    SCOPED_TRACE(target.name);
    const std::vector<StepResult> resumed =
        RunOrDie(job(target), {.steps = 3, .restore_path = attempt});
    ExpectClose(resumed, single);
    if (target.name == source.name) ExpectIdentical(resumed, after_three(source));
  }
}

INSTANTIATE_TEST_SUITE_P(From, ShardRunCheckpoints, ::testing::ValuesIn(kPlaces),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace troupe
