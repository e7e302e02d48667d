// Tests one job under every layout: equal samples, equal losses. Ranks are threads over loopback,
// hidden size 64.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "base/temporary_directory.h"
#include "tests/layouts/expect_steps.h"
#include "tests/layouts/training.h"

namespace troupe {
namespace {

v1::JobSpec Job(const Layout& layout, int64_t steps = 20) {
  return SmallJob(layout, SmallDataPrefix(), steps);
}

// --- Every layout against the single rank.

// Returns the steps of a single rank, which runs once per process.
const std::vector<StepResult>& SingleRank(bool tied) {
  static std::map<bool, std::vector<StepResult>> all;
  std::vector<StepResult>& steps = all[tied];
  if (steps.empty()) {
    v1::JobSpec spec = Job({});
    spec.mutable_model()->set_tie_word_embeddings(tied);
    steps = RunOrDie(spec);
  }
  return steps;
}

class LayoutTable : public ::testing::TestWithParam<std::tuple<int, int, int, bool>> {};

TEST_P(LayoutTable, FirstTwentyLossesEqualTheSingleRanks) {
  const auto [data, tensor, pipe, tied] = GetParam();
  v1::JobSpec spread = Job({data, tensor, pipe});
  spread.mutable_model()->set_tie_word_embeddings(tied);
  const std::vector<StepResult>& expected = SingleRank(tied);
  ExpectClose(RunOrDie(spread), expected);
  EXPECT_LT(expected.back().event.loss(), expected.front().event.loss() - 0.1)
      << "nothing was learnt: the comparison is idle";
}

std::string LayoutName(const ::testing::TestParamInfo<LayoutTable::ParamType>& info) {
  const auto [data, tensor, pipe, tied] = info.param;
  return "Data" + std::to_string(data) + "Tensor" + std::to_string(tensor) + "Pipe" +
         std::to_string(pipe) + (tied ? "Tied" : "");
}

INSTANTIATE_TEST_SUITE_P(Layouts, LayoutTable,
                         ::testing::Combine(::testing::Values(1, 2, 3, 4),
                                            ::testing::Values(1, 2, 4), ::testing::Values(1, 2, 4),
                                            ::testing::Bool()),
                         LayoutName);

// --- The recomputation in the backward pass is bit-identical to the forward pass.

class RecomputationTable
    : public ::testing::TestWithParam<std::tuple<const char*, const char*, int, int>> {};

TEST_P(RecomputationTable, LossesAndNormsHaveTheSameBits) {
  const auto [mode, dtype, tensor, pipe] = GetParam();
  v1::JobSpec spec = Job({1, tensor, pipe}, 6);
  spec.mutable_training()->set_compute_dtype(dtype);
  const std::vector<StepResult> kept = RunOrDie(spec);
  spec.mutable_activation_recomputation()->set_mode(mode);
  const std::vector<StepResult> again = RunOrDie(spec);
  ASSERT_EQ(again.size(), kept.size());
  for (size_t i = 0; i < kept.size(); ++i) {
    EXPECT_EQ(again[i].event.loss(), kept[i].event.loss()) << i;
    EXPECT_EQ(again[i].event.grad_norm(), kept[i].event.grad_norm()) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Recomputation, RecomputationTable,
                         ::testing::Combine(::testing::Values("selective", "full"),
                                            ::testing::Values("float32", "bfloat16"),
                                            ::testing::Values(1, 2), ::testing::Values(1, 2)),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param)) + std::get<1>(info.param) +
                                  "Tensor" + std::to_string(std::get<2>(info.param)) + "Pipe" +
                                  std::to_string(std::get<3>(info.param));
                         });

// --- Optimizer, gradients and parameters sharded over data ranks.

std::string ShardedName(const Layout& layout) {
  return fmt::format("Zero{}Shard{}Data{}Tensor{}Pipe{}", layout.zero_stage, layout.shard,
                     layout.data, layout.tensor, layout.pipe);
}

std::vector<Layout> ShardedLayouts() {
  std::vector<Layout> layouts;
  for (const int zero_stage : {1, 2, 3}) {
    for (const Layout& layout : {Layout{1, 1, 1, 2}, Layout{1, 1, 1, 3}, Layout{1, 1, 1, 4},
                                 Layout{2, 1, 1, 2}, Layout{1, 2, 1, 2}, Layout{1, 1, 2, 2},
                                 Layout{1, 2, 2, 2}, Layout{2, 2, 1, 2}, Layout{2, 1, 2, 2}}) {
      layouts.push_back(layout);
      layouts.back().zero_stage = zero_stage;
    }
  }
  return layouts;
}

class ShardedTable : public ::testing::TestWithParam<std::tuple<Layout, bool>> {};

TEST_P(ShardedTable, FirstTwentyLossesEqualTheSingleRanks) {
  const auto [layout, tied] = GetParam();
  v1::JobSpec single = Job({});
  v1::JobSpec spread = Job(layout);
  for (v1::JobSpec* spec : {&single, &spread}) spec->mutable_model()->set_tie_word_embeddings(tied);
  ExpectClose(RunOrDie(spread), RunOrDie(single));
}

INSTANTIATE_TEST_SUITE_P(Layouts, ShardedTable,
                         ::testing::Combine(::testing::ValuesIn(ShardedLayouts()),
                                            ::testing::Bool()),
                         [](const auto& info) {
                           return ShardedName(std::get<0>(info.param)) +
                                  (std::get<1>(info.param) ? "Tied" : "");
                         });

TEST(Sharded, ParametersKeptAfterForwardChangeNothing) {
  v1::JobSpec kept = Job({1, 1, 2, 2, 3});
  kept.mutable_parallelism()->set_reshard_after_forward("false");
  ExpectClose(RunOrDie(kept), SingleRank(false));
}

TEST(Sharded, HeldOutLossIsThatOfTheUpdatedParameters) {
  const auto with_validation = [](const Layout& layout) {
    v1::JobSpec spec = Job(layout, 4);
    spec.mutable_data()->set_validation_fraction(0.1);
    spec.mutable_training()->set_validation_interval(2);
    return spec;
  };
  const std::vector<StepResult> expected = RunOrDie(with_validation({}), {.steps = 4});
  for (const int zero_stage : {1, 2, 3}) {
    const std::vector<StepResult> actual =
        RunOrDie(with_validation({1, 1, 1, 2, zero_stage}), {.steps = 4});
    ASSERT_EQ(actual.size(), expected.size());
    for (size_t i = 0; i < actual.size(); ++i) {
      ASSERT_EQ(actual[i].event.has_validation_loss(), expected[i].event.has_validation_loss());
      if (!actual[i].event.has_validation_loss()) continue;
      EXPECT_NEAR(actual[i].event.validation_loss(), expected[i].event.validation_loss(), 1e-5);
    }
  }
}

TEST(Sharded, AHeadThatMakesItsGradientsInForwardIsReducedThere) {
  const auto long_rows = [](const Layout& layout, bool tied) {
    v1::JobSpec spec = Job(layout);
    spec.mutable_training()->set_sequence_length(1030);
    spec.mutable_training()->set_micro_batch_size(2);
    spec.mutable_training()->set_global_batch_size(8);
    v1::ModelSpec& model = *spec.mutable_model();
    model.set_tie_word_embeddings(tied);
    model.set_pattern("AD");
    model.set_hidden_size(16);
    model.set_num_attention_heads(1);
    model.set_num_key_value_heads(1);
    model.set_intermediate_size(16);
    return spec;
  };
  for (const bool tied : {false, true}) {
    const std::vector<StepResult> expected = RunOrDie(long_rows({}, tied), {.steps = 2});
    for (const int zero_stage : tied ? std::vector{2, 3} : std::vector{3}) {
      ExpectClose(RunOrDie(long_rows({1, 1, 1, 2, zero_stage}, tied), {.steps = 2}), expected);
    }
  }
}

TEST(Sharded, ARankWithoutRowsOfATensorStillTakesPart) {
  // Five ranks share tensors with as few as four rows.
  const auto narrow = [](const Layout& layout) {
    v1::JobSpec spec = Job(layout);
    spec.mutable_training()->set_global_batch_size(15);
    spec.mutable_model()->set_hidden_size(4);
    spec.mutable_model()->set_num_attention_heads(1);
    spec.mutable_model()->set_num_key_value_heads(1);
    spec.mutable_model()->set_head_dim(4);
    return spec;
  };
  const std::vector<StepResult> expected = RunOrDie(narrow({}));
  for (const int zero_stage : {1, 2, 3})
    ExpectClose(RunOrDie(narrow({1, 1, 1, 5, zero_stage})), expected);
}

// --- Any number of microbatches on any number of stages.

class MicrobatchTable : public ::testing::TestWithParam<std::tuple<int, int>> {};

TEST_P(MicrobatchTable, LossesEqualTheSingleRanks) {
  const auto [microbatches, pipe] = GetParam();
  v1::JobSpec single = Job({});
  v1::JobSpec spread = Job({1, 1, pipe});
  for (v1::JobSpec* spec : {&single, &spread})
    spec->mutable_training()->set_global_batch_size(microbatches);
  ExpectClose(RunOrDie(spread), RunOrDie(single));
}

INSTANTIATE_TEST_SUITE_P(Microbatches, MicrobatchTable,
                         ::testing::Combine(::testing::Values(1, 2, 3, 4, 8),
                                            ::testing::Values(2, 4)),
                         [](const auto& info) {
                           return std::to_string(std::get<0>(info.param)) + "OnPipe" +
                                  std::to_string(std::get<1>(info.param));
                         });

TEST(Layouts, LargerMicrobatchesChangeNothing) {
  v1::JobSpec larger = Job({2, 2, 1});
  larger.mutable_training()->set_micro_batch_size(3);
  ExpectClose(RunOrDie(larger), SingleRank(false));
}

TEST(Layouts, StagesCutAtGivenPointsChangeNothing) {
  v1::JobSpec uneven = Job({1, 1, 2});
  uneven.mutable_parallelism()->add_pipeline_parallel_split_points(3);
  ExpectClose(RunOrDie(uneven), SingleRank(false));
}

TEST(Layouts, ABlendOfDatasetsIsTheSameUnderEveryLayout) {
  TemporaryDirectory folder;
  WriteSmallDataset(folder.Child("other"));
  const auto blended = [&](const Layout& layout) {
    v1::JobSpec spec = Job(layout);
    for (const auto& [path, weight] :
         {std::pair(spec.data().train(), 3.0), std::pair(folder.Child("other"), 1.0)}) {
      auto* entry = spec.mutable_data()->add_blend();
      entry->set_path(path);
      entry->set_weight(weight);
    }
    spec.mutable_data()->clear_train();
    return spec;
  };
  const std::vector<StepResult> expected = RunOrDie(blended({}));
  EXPECT_NE(expected.back().event.loss(), SingleRank(false).back().event.loss())
      << "the blend is not read";
  ExpectClose(RunOrDie(blended({3, 1, 1})), expected);
  ExpectClose(RunOrDie(blended({2, 2, 2})), expected);
}

// --- Documents packed into rows.

class PackedLayouts : public ::testing::TestWithParam<Layout> {};

TEST_P(PackedLayouts, LossesAndSeenPairsAreThoseOfTheSingleRank) {
  const std::vector<StepResult> expected = RunOrDie(PackedJob({}));
  const std::vector<StepResult> actual = RunOrDie(PackedJob(GetParam()));
  ExpectClose(actual, expected);
  for (size_t i = 0; i < actual.size(); ++i) {
    EXPECT_EQ(actual[i].seen_pairs, expected[i].seen_pairs);
    EXPECT_LT(actual[i].seen_pairs, 0.7);
    EXPECT_GT(actual[i].seen_pairs, 0.1);
    EXPECT_LT(actual[i].event.tokens(), 12 * 16) << "the last token of a document has no target";
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, PackedLayouts,
                         ::testing::Values(Layout{3, 1, 1}, Layout{1, 2, 1}, Layout{1, 1, 4},
                                           Layout{2, 2, 2}),
                         [](const auto& info) {
                           return "Data" + std::to_string(info.param.data) + "Tensor" +
                                  std::to_string(info.param.tensor) + "Pipe" +
                                  std::to_string(info.param.pipe);
                         });

TEST(PackedLayouts, TheMaskIsSeen) {
  v1::JobSpec without = PackedJob({});
  without.mutable_data()->set_document_mask(false);
  const std::vector<StepResult> unmasked = RunOrDie(without);
  EXPECT_EQ(unmasked.front().seen_pairs, 1.0);
  EXPECT_NE(unmasked.front().event.loss(), RunOrDie(PackedJob({})).front().event.loss());
}

// --- bfloat16: equal within the precision of its 8 mantissa bits.

constexpr double kBfloat16Tolerance = 2e-2;  // relative, of losses
constexpr double kBfloat16NormTolerance = 5e-2;

// Six microbatches of two samples, three with data 2: gradients accumulate in matmuls of 32 rows,
// with packed operands without padding.
v1::JobSpec Bfloat16Job(const Layout& layout) {
  v1::JobSpec spec = Job(layout);
  spec.mutable_training()->set_micro_batch_size(2);
  spec.mutable_training()->set_compute_dtype("bfloat16");
  return spec;
}

void ExpectCloseInBfloat16(const std::vector<StepResult>& actual,
                           const std::vector<StepResult>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    ASSERT_TRUE(std::isfinite(actual[i].event.loss())) << "step " << actual[i].step;
    ASSERT_TRUE(std::isfinite(actual[i].event.grad_norm())) << "step " << actual[i].step;
    EXPECT_NEAR(actual[i].event.loss(), expected[i].event.loss(),
                kBfloat16Tolerance * expected[i].event.loss())
        << "loss of step " << actual[i].step;
    // A gradient that is added to garbage, or dropped, is visible here before it is in a loss.
    EXPECT_NEAR(actual[i].event.grad_norm(), expected[i].event.grad_norm(),
                kBfloat16NormTolerance * expected[i].event.grad_norm())
        << "norm of step " << actual[i].step;
  }
}

class Bfloat16Layouts : public ::testing::TestWithParam<Layout> {};

TEST_P(Bfloat16Layouts, LossesAreThoseOfTheSingleRank) {
  const std::vector<StepResult> expected = RunOrDie(Bfloat16Job({}));
  ASSERT_FALSE(expected.empty());
  ExpectCloseInBfloat16(RunOrDie(Bfloat16Job(GetParam())), expected);
  EXPECT_LT(expected.back().event.loss(), expected.front().event.loss() - 0.1)
      << "nothing was learnt: the comparison is idle";
}

INSTANTIATE_TEST_SUITE_P(Layouts, Bfloat16Layouts,
                         ::testing::Values(Layout{2, 1, 1}, Layout{1, 2, 1}, Layout{1, 1, 2},
                                           Layout{2, 2, 2}, Layout{1, 1, 1, 2, 1},
                                           Layout{1, 1, 2, 2, 1}, Layout{1, 1, 1, 2, 2},
                                           Layout{1, 1, 1, 2, 3}, Layout{1, 2, 2, 2, 3},
                                           Layout{.context = 2},
                                           Layout{.context = 2, .exchanges_heads = true},
                                           Layout{.tensor = 2, .by_rows = true},
                                           Layout{.tensor = 2, .context = 2, .by_rows = true},
                                           Layout{.shard = 2, .zero_stage = 3, .context = 2}),
                         [](const auto& info) {
                           const Layout& layout = info.param;
                           return ShardedName(layout) + (layout.context > 1 ? "Context" : "") +
                                  (layout.exchanges_heads ? "Exchange" : "") +
                                  (layout.by_rows ? "Rows" : "");
                         });

TEST(Bfloat16, TheSingleRankIsCloseToFloat32) {
  ExpectCloseInBfloat16(RunOrDie(Bfloat16Job({})), SingleRank(false));
}

TEST(Bfloat16, MicrobatchesOfOneOrTwoAreOneOfFour) {
  for (const int64_t micro_batch_size : {1, 2}) {
    v1::JobSpec several = Bfloat16Job({});
    several.mutable_training()->set_global_batch_size(4);
    v1::JobSpec one = several;
    several.mutable_training()->set_micro_batch_size(micro_batch_size);
    one.mutable_training()->set_micro_batch_size(4);
    ExpectCloseInBfloat16(RunOrDie(several), RunOrDie(one));
  }
}

// --- The same plan gives the same bits.

TEST(Determinism, ARepeatIsBitIdentical) {
  ExpectIdentical(RunOrDie(Job({2, 2, 2})), RunOrDie(Job({2, 2, 2})));
}

TEST(Determinism, AContinuationFromACheckpointIsBitIdentical) {
  for (const Layout& layout : {Layout{1, 1, 1}, Layout{2, 2, 2}}) {
    const TemporaryDirectory own;
    const std::string attempt = own.Child("step-00000006-epoch-1-attempt-1");
    const v1::JobSpec spec = Job(layout);
    std::vector<StepResult> whole = RunOrDie(spec, {.steps = 12});
    RunOrDie(spec, {.steps = 6, .save_path = attempt});
    whole.erase(whole.begin(), whole.begin() + 6);
    ExpectIdentical(RunOrDie(spec, {.steps = 6, .restore_path = attempt}), whole);
  }
}

TEST(Determinism, ATiedModelContinuesBitIdentically) {
  const TemporaryDirectory folder;
  const std::string attempt = folder.Child("step-00000006-epoch-1-attempt-1");
  v1::JobSpec spec = Job({1, 2, 2});
  spec.mutable_model()->set_tie_word_embeddings(true);
  std::vector<StepResult> whole = RunOrDie(spec, {.steps = 12});
  RunOrDie(spec, {.steps = 6, .save_path = attempt});
  whole.erase(whole.begin(), whole.begin() + 6);
  ExpectIdentical(RunOrDie(spec, {.steps = 6, .restore_path = attempt}), whole);
}

TEST(Determinism, AnyLayoutReadsAnyLayoutsCheckpoint) {
  const TemporaryDirectory folder;
  const std::string attempt = folder.Child("step-00000006-epoch-1-attempt-1");
  std::vector<StepResult> whole = RunOrDie(Job({}), {.steps = 12});
  RunOrDie(Job({2, 4, 1}), {.steps = 6, .save_path = attempt});
  whole.erase(whole.begin(), whole.begin() + 6);
  ExpectClose(RunOrDie(Job({1, 1, 4}), {.steps = 6, .restore_path = attempt}), whole);
}

// --- Validation.

TEST(Validation, HeldOutLossIsEqualUnderEveryLayoutAndComesFirstAtTheIntervalAndAtTheEnd) {
  const auto with_validation = [](const Layout& layout) {
    v1::JobSpec spec = Job(layout, 6);
    spec.mutable_data()->set_validation_fraction(0.1);
    spec.mutable_training()->set_validation_interval(4);
    // Not divisible by any number of data ranks.
    spec.mutable_training()->set_validation_samples(7);
    return spec;
  };
  const std::vector<StepResult> expected = RunOrDie(with_validation({}), {.steps = 6});
  for (const Layout& layout : {Layout{3, 1, 1}, Layout{2, 2, 2}, Layout{1, 1, 4}}) {
    const std::vector<StepResult> actual = RunOrDie(with_validation(layout), {.steps = 6});
    for (size_t i = 0; i < actual.size(); ++i) {
      const bool due = actual[i].step == 1 || actual[i].step == 4 || actual[i].step == 6;
      ASSERT_EQ(actual[i].event.has_validation_loss(), due) << "step " << actual[i].step;
      if (due) {
        EXPECT_NEAR(actual[i].event.validation_loss(), expected[i].event.validation_loss(), 1e-5);
      }
    }
    ExpectClose(actual, expected);
  }
}

TEST(Validation, LeavesTrainingAsItWas) {
  v1::JobSpec without = Job({1, 2, 2}, 100);
  without.mutable_data()->set_validation_fraction(0.1);
  v1::JobSpec with = without;
  with.mutable_training()->set_validation_interval(2);
  ExpectIdentical(RunOrDie(with, {.steps = 8}), RunOrDie(without, {.steps = 8}));
}

// --- Non-finite numbers.

void PoisonRank(int poisoned, int rank, Executor& executor) {
  if (rank != poisoned) return;
  const model::ParameterEntry& entry = executor.program().parameters.back();
  static_cast<float*>(executor.executable().Address(entry.value, 0))[0] =
      std::numeric_limits<float>::quiet_NaN();
}

TEST(Nonfinite, EndsTheJobNamingStepAndRankOnEveryRank) {
  const TrainResult result =
      Train(Job({1, 1, 2}),
            {.before_steps = [](int rank, Executor& executor) { PoisonRank(1, rank, executor); }});
  for (const Status& status : result.statuses) {
    EXPECT_EQ(status.code(), StatusCode::kOutOfRange);
    EXPECT_THAT(std::string(Message(status)), ::testing::HasSubstr("step 1"));
    EXPECT_THAT(std::string(Message(status)), ::testing::HasSubstr("rank 1"));
  }
}

TEST(Nonfinite, WithSkipStepTheStepIsReportedAndNothingIsApplied) {
  v1::JobSpec spec = Job({1, 1, 2});
  spec.mutable_training()->set_on_nonfinite("skip_step");
  const auto first_weight = [](Executor& executor) {
    const model::ParameterEntry& entry = executor.program().parameters.front();
    return static_cast<float*>(executor.executable().Address(entry.value, 0))[0];
  };
  float before = 0;
  float after = 1;
  const TrainResult result = Train(spec, {.steps = 3,
                                          .before_steps =
                                              [&](int rank, Executor& executor) {
                                                PoisonRank(1, rank, executor);
                                                if (rank == 0) before = first_weight(executor);
                                              },
                                          .after_steps =
                                              [&](int rank, Executor& executor) {
                                                if (rank == 0) after = first_weight(executor);
                                              }});
  EXPECT_EQ(before, after);
  for (const auto& steps : result.steps) {
    ASSERT_EQ(steps.size(), 3u);
    for (const StepResult& step : steps) EXPECT_TRUE(step.event.skipped());
  }
}

// --- Ranks with inconsistent programs.

TEST(Start, ARankWithAnotherProgramIsRefusedBeforeTheFirstStep) {
  const TrainResult result = Train(Job({2, 2, 1}), {.mislead = [](int rank, v1::JobSpec* spec) {
                                     if (rank == 3)
                                       spec->mutable_training()->set_compute_dtype("bfloat16");
                                   }});
  for (size_t rank = 0; rank < result.statuses.size(); ++rank) {
    EXPECT_EQ(result.statuses[rank].code(), StatusCode::kFailedPrecondition)
        << result.statuses[rank];
    EXPECT_TRUE(result.steps[rank].empty());
  }
  EXPECT_THAT(std::string(Message(result.statuses[3])), ::testing::HasSubstr("differ from"));
}

TEST(Start, TicketEndsAreAgreedToBeTheSmallest) {
  const TrainResult result = Train(
      Job({2, 1, 2}), {.steps = 0, .before_steps = [](int rank, Executor& executor) {
                         const std::vector<int64_t> own = {100 - rank, rank};
                         EXPECT_EQ(*executor.AgreeOnLeast(own), (std::vector<int64_t>{97, 0}));
                       }});
  for (const Status& status : result.statuses) EXPECT_TRUE(status.ok()) << status;
}

}  // namespace
}  // namespace troupe
