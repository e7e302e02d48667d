// A mixture model under every layout that spreads it: the same samples, choices, losses and norms.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

#include "base/temporary_directory.h"
#include "plan/job_defaults.h"
#include "tests/layouts/expect_steps.h"

namespace troupe {
namespace {

struct Spread {
  int expert = 1;
  int data = 1;
  int pipe = 1;
};

std::string NameOf(const Spread& spread) {
  return fmt::format("Expert{}Data{}Pipe{}", spread.expert, spread.data, spread.pipe);
}

// Eight experts of 48, two a token and one shared, with auxiliary and z losses.
v1::JobSpec Mixture(const Spread& spread, int64_t steps = 20) {
  v1::JobSpec spec =
      SmallJob({.data = spread.data, .tensor = 1, .pipe = spread.pipe}, SmallDataPrefix(), steps);
  v1::ModelSpec& model = *spec.mutable_model();
  model.set_pattern("(AE)x2");
  model.set_num_experts(8);
  model.set_num_experts_per_tok(2);
  model.set_moe_intermediate_size(48);
  model.set_num_shared_experts(1);
  model.set_router_aux_loss_coef(0.05);
  model.set_router_z_loss_coef(0.01);
  spec.mutable_parallelism()->set_expert_parallel_degree(spread.expert);
  ApplyDefaults(&spec);
  return spec;
}

class ExpertLayouts : public ::testing::TestWithParam<Spread> {};

TEST_P(ExpertLayouts, FirstTwentyLossesEqualTheSingleRanks) {
  const std::vector<StepResult> expected = RunOrDie(Mixture({}));
  ExpectClose(RunOrDie(Mixture(GetParam())), expected);
  EXPECT_LT(expected.back().loss, expected.front().loss - 0.1)
      << "nothing was learnt: the comparison is idle";
}

INSTANTIATE_TEST_SUITE_P(Layouts, ExpertLayouts,
                         ::testing::Values(Spread{2, 1, 1}, Spread{4, 1, 1}, Spread{1, 2, 1},
                                           Spread{1, 1, 2}, Spread{2, 1, 2}, Spread{2, 2, 1},
                                           Spread{2, 3, 2}, Spread{4, 1, 2}),
                         [](const auto& info) { return NameOf(info.param); });

TEST(Experts, SigmoidRoutersWithoutSharedExpertsAreSpreadAlike) {
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
  EXPECT_NE(expected.back().loss, RunOrDie(Mixture({})).back().loss);
  ExpectClose(RunOrDie(job({2, 1, 1})), expected);
  ExpectClose(RunOrDie(job({4, 1, 1})), expected);
}

TEST(Experts, LargerMicrobatchesChangeNothingButWhatCapacityDrops) {
  v1::JobSpec larger = Mixture({2, 1, 1});
  larger.mutable_training()->set_micro_batch_size(3);
  ExpectClose(RunOrDie(larger), RunOrDie(Mixture({})));
}

TEST(Experts, AuxiliaryLossesAreNoPartOfTheReportedLossButMoveTheGradient) {
  v1::JobSpec without = Mixture({}, 2);
  without.mutable_model()->set_router_aux_loss_coef(0);
  without.mutable_model()->set_router_z_loss_coef(0);
  const std::vector<StepResult> plain = RunOrDie(without, {.steps = 2});
  const std::vector<StepResult> with = RunOrDie(Mixture({}, 2), {.steps = 2});
  EXPECT_EQ(with[0].loss, plain[0].loss);
  EXPECT_NE(with[0].grad_norm, plain[0].grad_norm);
}

// A capacity counts the tokens of a rank's microbatch: equal at equal microbatches.
TEST(Experts, WithDropsLossesAreEqualAtEqualMicrobatches) {
  const auto job = [](const Spread& spread) {
    v1::JobSpec spec = Mixture(spread);
    spec.mutable_model()->set_capacity_factor(0.75);
    return spec;
  };
  const std::vector<StepResult> expected = RunOrDie(job({}));
  EXPECT_NE(expected.front().loss, RunOrDie(Mixture({})).front().loss) << "nothing was dropped";
  ExpectClose(RunOrDie(job({2, 1, 1})), expected);
  ExpectClose(RunOrDie(job({2, 2, 1})), expected);
  ExpectClose(RunOrDie(job({2, 1, 2})), expected);
}

TEST(Experts, DroppedChoicesAreCountedOverAllRanksAndLayers) {
  for (const Spread& spread : {Spread{1, 1, 1}, Spread{2, 1, 2}, Spread{2, 2, 1}}) {
    v1::JobSpec spec = Mixture(spread, 2);
    const std::vector<StepResult> whole = RunOrDie(spec, {.steps = 2});
    spec.mutable_model()->set_capacity_factor(0.5);
    const std::vector<StepResult> limited = RunOrDie(spec, {.steps = 2});
    // 12 samples of 16 tokens with 2 choices in 2 layers; 8 experts that take 2 of each sample.
    EXPECT_EQ(whole[0].routed, 12 * 16 * 2 * 2);
    EXPECT_EQ(whole[0].dropped, 0);
    EXPECT_EQ(limited[0].routed, whole[0].routed);
    EXPECT_GE(limited[0].dropped, 12 * (16 * 2 - 8 * 2) * 2);
    EXPECT_LT(limited[0].dropped, limited[0].routed);
  }
}

// Balancing without a loss: the same biases under every layout, kept in checkpoints.
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
        executor.executable().Address(executor.program().router_biases[0].bias, 0));
    biases.emplace_back(bias, bias + 8);
  };
  const std::vector<StepResult> expected =
      RunOrDie(job({}), {.steps = 12, .after_steps = keep_bias});
  v1::JobSpec without = job({});
  without.mutable_model()->set_router_bias_update_rate(0);
  EXPECT_NE(RunOrDie(without, {.steps = 12}).back().loss, expected.back().loss);
  for (const Spread& spread : {Spread{2, 1, 1}, Spread{2, 2, 1}, Spread{2, 1, 2}}) {
    ExpectClose(RunOrDie(job(spread), {.steps = 12, .after_steps = keep_bias}), expected);
    EXPECT_EQ(biases.back(), biases.front());
  }
  EXPECT_NE(biases.front(), std::vector<float>(8, 0.0f));
  const TemporaryDirectory folder;
  const std::string attempt = folder.Child("step-00000006-epoch-1-attempt-1");
  RunOrDie(job({2, 1, 1}), {.steps = 6, .save_path = attempt});
  std::vector<StepResult> rest(expected.begin() + 6, expected.end());
  ExpectClose(RunOrDie(job({4, 1, 1}), {.steps = 6, .restore_path = attempt}), rest);
}

TEST(Experts, ARepeatIsBitIdentical) {
  ExpectIdentical(RunOrDie(Mixture({2, 1, 2})), RunOrDie(Mixture({2, 1, 2})));
}

TEST(Experts, Bfloat16IsCloseToFloat32AndTrains) {
  v1::JobSpec spec = Mixture({2, 1, 1});
  spec.mutable_training()->set_compute_dtype("bfloat16");
  const std::vector<StepResult> actual = RunOrDie(spec);
  const std::vector<StepResult> expected = RunOrDie(Mixture({}));
  for (size_t i = 0; i < actual.size(); ++i) {
    EXPECT_NEAR(actual[i].loss, expected[i].loss, 3e-2 * expected[i].loss)
        << "step " << actual[i].step;
  }
}

TEST(Experts, RecomputationChangesNothing) {
  for (const char* mode : {"selective", "full"}) {
    v1::JobSpec spec = Mixture({2, 1, 1}, 4);
    const std::vector<StepResult> expected = RunOrDie(spec, {.steps = 4});
    spec.mutable_activation_recomputation()->set_mode(mode);
    ExpectIdentical(RunOrDie(spec, {.steps = 4}), expected);
  }
}

// From every layout to every layout.
class ExpertReshards : public ::testing::TestWithParam<Spread> {};

TEST_P(ExpertReshards, GoesOnUnderEveryLayout) {
  const TemporaryDirectory folder;
  const std::string attempt = folder.Child("step-00000003-epoch-1-attempt-1");
  std::vector<StepResult> uninterrupted = RunOrDie(Mixture(GetParam(), 6), {.steps = 6});
  RunOrDie(Mixture(GetParam(), 6), {.steps = 3, .save_path = attempt});
  uninterrupted.erase(uninterrupted.begin(), uninterrupted.begin() + 3);
  for (const Spread& target : {Spread{1, 1, 1}, Spread{2, 1, 1}, Spread{4, 1, 1}, Spread{2, 1, 2},
                               Spread{2, 2, 1}, Spread{1, 1, 2}}) {
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

INSTANTIATE_TEST_SUITE_P(From, ExpertReshards,
                         ::testing::Values(Spread{1, 1, 1}, Spread{4, 1, 1}, Spread{2, 2, 2}),
                         [](const auto& info) { return NameOf(info.param); });

}  // namespace
}  // namespace troupe
