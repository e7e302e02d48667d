// Tests every axis of the dense model alone, every pair of axes, and eight layouts of eight ranks:
// samples, losses and norms equal the single rank's. Ranks are threads over loopback, hidden size
// 64.
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "tests/layouts/axis_table.h"
#include "tests/layouts/expect_steps.h"
#include "tests/layouts/training.h"

namespace troupe {
namespace {

v1::JobSpec Job(const Layout& layout) { return SmallJob(layout, SmallDataPrefix(), 20); }

// Returns the steps of a single rank, which runs once per process.
const std::vector<StepResult>& SingleRank() {
  static const std::vector<StepResult> steps = RunOrDie(Job({}));
  return steps;
}

// --- The table of axes.

class AxesTable : public ::testing::TestWithParam<AxisUses> {};

TEST_P(AxesTable, FirstTwentyLossesEqualTheSingleRanks) {
  v1::JobSpec spread = Job({});
  SetAxes(GetParam(), spread.mutable_parallelism());
  ExpectClose(RunOrDie(spread), SingleRank());
  EXPECT_LT(SingleRank().back().event.loss(), SingleRank().front().event.loss() - 0.1)
      << "nothing was learnt: the comparison is idle";
}

const auto kUsesName = [](const auto& info) { return NameOf(info.param); };

INSTANTIATE_TEST_SUITE_P(Alone, AxesTable, ::testing::ValuesIn(AxesAlone()), kUsesName);
INSTANTIATE_TEST_SUITE_P(Pairs, AxesTable, ::testing::ValuesIn(PairsOfAxes()), kUsesName);
INSTANTIATE_TEST_SUITE_P(EightRanks, AxesTable, ::testing::ValuesIn(MixesOfEight()), kUsesName);

// --- Sequence parallelism: rows between matmuls are sharded over the tensor axis.

v1::JobSpec SequenceJob(const Layout& layout) {
  v1::JobSpec spec = Job(layout);
  spec.mutable_parallelism()->set_sequence_parallel(true);
  return spec;
}

class SequenceLayouts : public ::testing::TestWithParam<std::tuple<int, int, int, bool>> {};

TEST_P(SequenceLayouts, FirstTwentyLossesEqualTheSingleRanks) {
  const auto [data, tensor, pipe, tied] = GetParam();
  v1::JobSpec single = Job({});
  v1::JobSpec spread = SequenceJob({data, tensor, pipe});
  for (v1::JobSpec* spec : {&single, &spread}) {
    // 17 rows are not a multiple of any degree.
    spec->mutable_training()->set_sequence_length(17);
    spec->mutable_model()->set_tie_word_embeddings(tied);
  }
  ExpectClose(RunOrDie(spread), RunOrDie(single));
}

std::string LayoutName(const ::testing::TestParamInfo<SequenceLayouts::ParamType>& info) {
  const auto [data, tensor, pipe, tied] = info.param;
  return fmt::format("Data{}Tensor{}Pipe{}{}", data, tensor, pipe, tied ? "Tied" : "");
}

INSTANTIATE_TEST_SUITE_P(Layouts, SequenceLayouts,
                         ::testing::Combine(::testing::Values(1, 2), ::testing::Values(2, 4),
                                            ::testing::Values(1, 2), ::testing::Bool()),
                         LayoutName);

TEST(SequenceLayouts, PackedRowsAndLargerMicrobatchesChangeNothing) {
  v1::JobSpec single = PackedJob({});
  v1::JobSpec spread = PackedJob({1, 2, 2});
  spread.mutable_parallelism()->set_sequence_parallel(true);
  spread.mutable_training()->set_micro_batch_size(3);
  ExpectClose(RunOrDie(spread), RunOrDie(single));
}

TEST(SequenceLayouts, ShardedParametersChangeNothing) {
  for (const int zero_stage : {1, 2, 3})
    ExpectClose(RunOrDie(SequenceJob({1, 2, 1, 2, zero_stage})), SingleRank());
}

// --- Context parallelism: ranks share samples; each has a head and a tail chunk of their tokens.

v1::JobSpec OverContext(v1::JobSpec spec, int64_t degree, const char* method) {
  spec.mutable_parallelism()->set_context_parallel_degree(degree);
  spec.mutable_parallelism()->set_context_parallel_method(method);
  return spec;
}

constexpr const char* kContextMethods[] = {"ring", "all_to_all"};

class ContextLayouts
    : public ::testing::TestWithParam<std::tuple<const char*, std::tuple<int, Layout>>> {};

TEST_P(ContextLayouts, FirstTwentyLossesEqualTheSingleRanks) {
  const auto& [method, spread_over] = GetParam();
  const auto& [context, layout] = spread_over;
  v1::JobSpec spread = OverContext(Job(layout), context, method);
  spread.mutable_training()->set_micro_batch_size(2);
  ExpectClose(RunOrDie(spread), SingleRank());
}

TEST_P(ContextLayouts, DocumentsOfPackedRowsAreSeenWhole) {
  const auto& [method, spread_over] = GetParam();
  const auto& [context, layout] = spread_over;
  ExpectClose(RunOrDie(OverContext(PackedJob(layout), context, method)), RunOrDie(PackedJob({})));
}

std::string ContextName(const ::testing::TestParamInfo<ContextLayouts::ParamType>& info) {
  const auto& [method, spread_over] = info.param;
  const auto& [context, layout] = spread_over;
  return fmt::format("{}{}Data{}Tensor{}Pipe{}",
                     std::string(method) == "ring" ? "Ring" : "Exchange", context, layout.data,
                     layout.tensor, layout.pipe);
}

INSTANTIATE_TEST_SUITE_P(Layouts, ContextLayouts,
                         ::testing::Combine(::testing::ValuesIn(kContextMethods),
                                            ::testing::Values(std::tuple(2, Layout{1, 1, 1}),
                                                              std::tuple(4, Layout{1, 1, 1}),
                                                              std::tuple(2, Layout{2, 1, 1}),
                                                              std::tuple(2, Layout{1, 2, 1}),
                                                              std::tuple(2, Layout{1, 1, 2}),
                                                              std::tuple(4, Layout{1, 1, 2}))),
                         ContextName);

TEST(ContextLayouts, WithSequenceParallelismAndTiedTablesNothingChanges) {
  for (const char* method : kContextMethods) {
    v1::JobSpec single = Job({});
    v1::JobSpec spread = OverContext(SequenceJob({1, 2, 2}), 2, method);
    for (v1::JobSpec* spec : {&single, &spread})
      spec->mutable_model()->set_tie_word_embeddings(true);
    ExpectClose(RunOrDie(spread), RunOrDie(single));
  }
}

TEST(ContextLayouts, ShardedParametersChangeNothing) {
  for (const char* method : kContextMethods) {
    for (const int zero_stage : {1, 2, 3}) {
      ExpectClose(RunOrDie(OverContext(Job({1, 1, 1, 2, zero_stage}), 2, method)), SingleRank());
    }
  }
}

TEST(ContextLayouts, RingsGoWithRecomputationAndEverySplitOfTheBackwardPass) {
  for (const char* mode : {"selective", "full"}) {
    v1::JobSpec spread = OverContext(Job({1, 1, 2}), 2, "ring");
    spread.mutable_activation_recomputation()->set_mode(mode);
    spread.mutable_parallelism()->set_pipeline_parallel_schedule("ZBH1");
    ExpectClose(RunOrDie(spread), SingleRank());
  }
}

TEST(ContextLayouts, HeldOutLossIsTheSingleRanks) {
  v1::JobSpec single = SmallJob({}, SmallDataPrefix(), 4);
  single.mutable_data()->set_validation_fraction(0.1);
  const std::vector<StepResult> expected = RunOrDie(single, {.steps = 4});
  const std::vector<StepResult> actual = RunOrDie(OverContext(single, 2, "ring"), {.steps = 4});
  EXPECT_NEAR(actual.back().event.validation_loss(), expected.back().event.validation_loss(), 1e-5);
}

}  // namespace
}  // namespace troupe
