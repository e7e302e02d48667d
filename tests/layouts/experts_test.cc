// Tests an MoE model under every layout that spreads it: samples, choices, losses and norms are
// equal.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <tuple>

#include "base/temporary_directory.h"
#include "tests/layouts/expect_steps.h"
#include "tests/layouts/experts_job.h"

namespace troupe {
namespace {

// Returns the steps of a single rank, which runs once per process.
const std::vector<StepResult>& SingleRank() {
  static const std::vector<StepResult> steps = RunOrDie(Mixture({}));
  return steps;
}

// No degree divides these rows: 3 · 7 on two tensor ranks.
TEST(Experts, UnevenRowsAreRoutedAsAnyOthers) {
  const auto job = [](const Spread& spread) {
    v1::JobSpec spec = Mixture(spread, 4);
    spec.mutable_training()->set_sequence_length(7);
    spec.mutable_training()->set_micro_batch_size(3);
    return spec;
  };
  const std::vector<StepResult> expected = RunOrDie(job({}), {.steps = 4});
  for (const Spread& spread :
       {Spread{.tensor = 2, .by_rows = true}, Spread{.expert = 2, .tensor = 2},
        Spread{.expert = 2, .tensor = 2, .over_tensor = true},
        Spread{.expert = 2, .tensor = 2, .gathers = true},
        Spread{.tensor = 4, .over_tensor = true, .by_rows = true}}) {
    ExpectClose(RunOrDie(job(spread), {.steps = 4}), expected);
  }
}

// Dense parameters are the same on all expert ranks: they are sharded over these if data_shard has
// one rank.
TEST(Experts, ParametersShardedOverExpertAloneHaveTheSingleRanksLosses) {
  const std::vector<StepResult>& expected = SingleRank();
  for (const int stage : {1, 2, 3}) {
    for (const Spread& spread : {Spread{.expert = 2}, Spread{.expert = 2, .data = 2}}) {
      SCOPED_TRACE(fmt::format("zero_stage {} {}", stage, NameOf(spread)));
      v1::JobSpec spec = Mixture(spread);
      spec.mutable_parallelism()->set_zero_stage(stage);
      ExpectClose(RunOrDie(spec), expected);
    }
  }
}

class ExpertLayouts : public ::testing::TestWithParam<Spread> {};

TEST_P(ExpertLayouts, FirstTwentyLossesEqualTheSingleRanks) {
  const std::vector<StepResult>& expected = SingleRank();
  ExpectClose(RunOrDie(Mixture(GetParam())), expected);
  EXPECT_LT(expected.back().event.loss(), expected.front().event.loss() - 0.1)
      << "nothing was learnt: the comparison is idle";
}

const auto kName = [](const auto& info) { return NameOf(info.param); };

INSTANTIATE_TEST_SUITE_P(OneAxis, ExpertLayouts, ::testing::ValuesIn(MixturesOfOneAxis()), kName);
INSTANTIATE_TEST_SUITE_P(TwoAxes, ExpertLayouts, ::testing::ValuesIn(MixturesOfTwoAxes()), kName);
INSTANTIATE_TEST_SUITE_P(EightRanks, ExpertLayouts, ::testing::ValuesIn(MixturesOfEightRanks()),
                         kName);
INSTANTIATE_TEST_SUITE_P(AllGather, ExpertLayouts, ::testing::ValuesIn(MixturesThatGather()),
                         kName);
INSTANTIATE_TEST_SUITE_P(Schedules, ExpertLayouts, ::testing::ValuesIn(MixturesBySchedule()),
                         kName);
INSTANTIATE_TEST_SUITE_P(RingContext, ExpertLayouts, ::testing::ValuesIn(MixturesOnRings()), kName);

TEST(Experts, SigmoidRoutersWithoutSharedExpertsHaveTheSameResultsUnderEverySpread) {
  const auto job = [](const Spread& spread) {
    v1::JobSpec spec = Mixture(spread);
    v1::ModelSpec& model = *spec.mutable_model();
    model.set_router_score("sigmoid");
    model.set_norm_topk_prob(false);
    model.set_num_experts(4);
    model.set_num_experts_per_tok(3);
    model.set_num_shared_experts(0);
    return spec;
  };
  const std::vector<StepResult> expected = RunOrDie(job({}));
  EXPECT_NE(expected.back().event.loss(), SingleRank().back().event.loss());
  ExpectClose(RunOrDie(job({.expert = 2})), expected);
  ExpectClose(RunOrDie(job({.expert = 4})), expected);
}

TEST(Experts, LargerMicrobatchesChangeNothingButWhatCapacityDrops) {
  v1::JobSpec larger = Mixture({.expert = 2});
  larger.mutable_training()->set_micro_batch_size(3);
  ExpectClose(RunOrDie(larger), SingleRank());
}

TEST(Experts, AuxiliaryLossesAreNoPartOfTheReportedLossButMoveTheGradient) {
  v1::JobSpec without = Mixture({}, 2);
  without.mutable_model()->set_router_aux_loss_coef(0);
  without.mutable_model()->set_router_z_loss_coef(0);
  const std::vector<StepResult> plain = RunOrDie(without, {.steps = 2});
  const std::vector<StepResult> with = RunOrDie(Mixture({}, 2), {.steps = 2});
  EXPECT_EQ(with[0].event.loss(), plain[0].event.loss());
  EXPECT_NE(with[0].event.grad_norm(), plain[0].event.grad_norm());
}

// The capacity depends on the tokens of a rank's microbatch, so equal microbatches have equal
// drops.
TEST(Experts, WithDropsLossesAreEqualAtEqualMicrobatches) {
  const auto job = [](const Spread& spread) {
    v1::JobSpec spec = Mixture(spread);
    spec.mutable_model()->set_capacity_factor(0.75);
    return spec;
  };
  const std::vector<StepResult> expected = RunOrDie(job({}));
  EXPECT_NE(expected.front().event.loss(), SingleRank().front().event.loss())
      << "nothing was dropped";
  ExpectClose(RunOrDie(job({.expert = 2})), expected);
  ExpectClose(RunOrDie(job({.expert = 2, .data = 2})), expected);
  ExpectClose(RunOrDie(job({.expert = 2, .pipe = 2})), expected);
  ExpectClose(RunOrDie(job({.expert = 2, .gathers = true})), expected);
  // Each rank routes its own group of rows: the drops differ from the single rank's, but they do
  // not depend on how the experts are spread.
  const std::vector<StepResult> by_rows = RunOrDie(job({.tensor = 2, .by_rows = true}));
  EXPECT_NE(by_rows.back().event.loss(), expected.back().event.loss());
  ExpectClose(RunOrDie(job({.tensor = 2, .over_tensor = true, .by_rows = true})), by_rows);
  ExpectClose(RunOrDie(job({.expert = 2, .tensor = 2})), by_rows);
  ExpectClose(RunOrDie(job({.expert = 2, .tensor = 2, .over_tensor = true, .gathers = true})),
              by_rows);
}

TEST(Experts, DroppedChoicesAreCountedOverAllRanksAndLayers) {
  for (const Spread& spread :
       {Spread{}, Spread{.expert = 2, .pipe = 2}, Spread{.expert = 2, .data = 2},
        Spread{.expert = 2, .tensor = 2}, Spread{.tensor = 2}, Spread{.context = 2}}) {
    v1::JobSpec spec = Mixture(spread, 2);
    const std::vector<StepResult> whole = RunOrDie(spec, {.steps = 2});
    spec.mutable_model()->set_capacity_factor(0.5);
    const std::vector<StepResult> limited = RunOrDie(spec, {.steps = 2});
    // 12 samples of 16 tokens with 2 choices in 2 layers; each of the 8 experts accepts 2 choices
    // per sample, or 1 per half sample.
    EXPECT_EQ(whole[0].routed, 12 * 16 * 2 * 2);
    EXPECT_EQ(whole[0].dropped, 0);
    EXPECT_EQ(limited[0].routed, whole[0].routed);
    EXPECT_GE(limited[0].dropped, 12 * (16 * 2 - 8 * 2) * 2);
    EXPECT_LT(limited[0].dropped, limited[0].routed);
  }
}

TEST(Experts, TheLoadOfEachExpertIsReportedOnceForEachStage) {
  std::vector<double> expected;
  for (const Spread& spread : {Spread{}, Spread{.expert = 2, .tensor = 2}, Spread{.tensor = 2},
                               Spread{.pipe = 2, .context = 2}, Spread{.expert = 2, .pipe = 2}}) {
    const TrainResult result = Train(Mixture(spread, 2), {.steps = 2});
    std::vector<double> load(8, 0.0);
    for (const std::vector<StepResult>& steps : result.steps) {
      ASSERT_EQ(steps.size(), 2u);
      for (size_t e = 0; e < steps[0].expert_load.size(); ++e) load[e] += steps[0].expert_load[e];
    }
    if (expected.empty()) expected = load;
    EXPECT_EQ(load, expected) << NameOf(spread);
    EXPECT_EQ(std::accumulate(load.begin(), load.end(), 0.0),
              static_cast<double>(result.steps[0][0].routed));
  }
}

// Balancing without a loss: the biases are the same under every layout and are stored in
// checkpoints.
TEST(Experts, BiasesThatBalanceAreEqualUnderEveryLayoutAndKept) {
  const auto job = [](const Spread& spread) {
    v1::JobSpec spec = Mixture(spread, 12);
    spec.mutable_model()->set_router_aux_loss_coef(0);
    spec.mutable_model()->set_router_bias_update_rate(0.01);
    return spec;
  };
  std::vector<std::vector<float>> biases;
  const auto keep_bias = [&biases](int rank, Executor& executor) {
    if (rank != 0) return;
    const auto* bias = static_cast<const float*>(
        executor.executable().Address(executor.program().router_biases[0], 0));
    biases.emplace_back(bias, bias + 8);
  };
  const std::vector<StepResult> expected =
      RunOrDie(job({}), {.steps = 12, .after_steps = keep_bias});
  v1::JobSpec without = job({});
  without.mutable_model()->set_router_bias_update_rate(0);
  EXPECT_NE(RunOrDie(without, {.steps = 12}).back().event.loss(), expected.back().event.loss());
  for (const Spread& spread :
       {Spread{.expert = 2}, Spread{.expert = 2, .data = 2}, Spread{.expert = 2, .pipe = 2},
        Spread{.expert = 2, .tensor = 2}, Spread{.context = 2, .shard = 2}}) {
    ExpectClose(RunOrDie(job(spread), {.steps = 12, .after_steps = keep_bias}), expected);
    EXPECT_EQ(biases.back(), biases.front());
  }
  EXPECT_NE(biases.front(), std::vector<float>(8, 0.0f));
  const TemporaryDirectory folder;
  const std::string attempt = folder.Child("step-00000006-epoch-1-attempt-1");
  RunOrDie(job({.expert = 2}), {.steps = 6, .save_path = attempt});
  std::vector<StepResult> rest(expected.begin() + 6, expected.end());
  ExpectClose(RunOrDie(job({.expert = 4}), {.steps = 6, .restore_path = attempt}), rest);
}

TEST(Experts, ARepeatIsBitIdentical) {
  for (const Spread& spread :
       {Spread{.expert = 2, .pipe = 2}, Spread{.expert = 2, .tensor = 2, .gathers = true}}) {
    ExpectIdentical(RunOrDie(Mixture(spread)), RunOrDie(Mixture(spread)));
  }
}

TEST(Experts, Bfloat16IsCloseToFloat32AndTrains) {
  const std::vector<StepResult>& expected = SingleRank();
  for (const Spread& spread :
       {Spread{.expert = 2}, Spread{.expert = 2, .tensor = 2}, Spread{.expert = 2, .gathers = true},
        Spread{.expert = 2, .shard = 2}}) {
    v1::JobSpec spec = Mixture(spread);
    spec.mutable_training()->set_compute_dtype("bfloat16");
    const std::vector<StepResult> actual = RunOrDie(spec);
    for (size_t i = 0; i < actual.size(); ++i) {
      EXPECT_NEAR(actual[i].event.loss(), expected[i].event.loss(), 3e-2 * expected[i].event.loss())
          << NameOf(spread) << ", step " << actual[i].step;
    }
  }
}

TEST(Experts, RecomputationChangesNothing) {
  for (const char* mode : {"selective", "full"}) {
    for (const Spread& spread : {Spread{.expert = 2}, Spread{.expert = 2, .tensor = 2, .shard = 2},
                                 Spread{.expert = 2, .context = 2, .gathers = true}}) {
      v1::JobSpec spec = Mixture(spread, 4);
      const std::vector<StepResult> expected = RunOrDie(spec, {.steps = 4});
      spec.mutable_activation_recomputation()->set_mode(mode);
      ExpectIdentical(RunOrDie(spec, {.steps = 4}), expected);
    }
  }
}

// Resumes from every layout under every layout.
class ExpertReshards : public ::testing::TestWithParam<Spread> {};

TEST_P(ExpertReshards, GoesOnUnderEveryLayout) {
  const TemporaryDirectory folder;
  const std::string attempt = folder.Child("step-00000003-epoch-1-attempt-1");
  std::vector<StepResult> uninterrupted = RunOrDie(Mixture(GetParam(), 6), {.steps = 6});
  RunOrDie(Mixture(GetParam(), 6), {.steps = 3, .save_path = attempt});
  uninterrupted.erase(uninterrupted.begin(), uninterrupted.begin() + 3);
  for (const Spread& target :
       {Spread{}, Spread{.expert = 4}, Spread{.expert = 2, .pipe = 2},
        Spread{.expert = 2, .tensor = 2}, Spread{.expert = 2, .tensor = 2, .over_tensor = true},
        Spread{.expert = 2, .shard = 2}, Spread{.tensor = 2, .context = 2},
        Spread{.expert = 2, .pipe = 2, .shard = 2, .zero_stage = 1}}) {
    SCOPED_TRACE(NameOf(target));
    const std::vector<StepResult> resumed =
        RunOrDie(Mixture(target, 6), {.steps = 3, .restore_path = attempt});
    if (NameOf(target) == NameOf(GetParam())) {
      ExpectIdentical(resumed, uninterrupted);
    } else {
      ExpectClose(resumed, uninterrupted);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    From, ExpertReshards,
    ::testing::Values(Spread{}, Spread{.expert = 4}, Spread{.expert = 2, .data = 2, .pipe = 2},
                      Spread{.expert = 2, .tensor = 2},
                      Spread{.expert = 2, .tensor = 2, .shard = 2, .over_tensor = true},
                      Spread{.context = 2, .shard = 2}),
    kName);

}  // namespace
}  // namespace troupe
