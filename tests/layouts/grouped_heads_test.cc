// Tests models with fewer key-value heads than heads: the losses are the same under every layout.
// Sharded, gathered and exchanged key-value tensors then differ in size from the queries.
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "base/temporary_directory.h"
#include "plan/job/job_defaults.h"
#include "tests/layouts/expect_steps.h"
#include "tests/layouts/experts_job.h"
#include "tests/layouts/training.h"

namespace troupe {
namespace {

constexpr int64_t kSteps = 12;

v1::JobSpec Job(const Layout& layout, int key_value_heads) {
  v1::JobSpec spec = SmallJob(layout, SmallDataPrefix(), kSteps);
  spec.mutable_model()->set_num_key_value_heads(key_value_heads);
  ApplyDefaults(&spec);
  return spec;
}

std::string NameOf(const Layout& layout) {
  return fmt::format("Data{}Tensor{}{}Pipe{}Shard{}Context{}{}", layout.data, layout.tensor,
                     layout.by_rows ? "Rows" : "", layout.pipe, layout.shard, layout.context,
                     layout.exchanges_heads ? "Exchange" : "");
}

std::string NameOfCase(const ::testing::TestParamInfo<std::tuple<int, Layout>>& info) {
  const Layout& layout = std::get<1>(info.param);
  return fmt::format("{}Heads{}{}", std::get<0>(info.param), NameOf(layout),
                     layout.shard > 1 ? fmt::format("Zero{}", layout.zero_stage) : "");
}

class GroupedHeads : public ::testing::TestWithParam<std::tuple<int, Layout>> {};

TEST_P(GroupedHeads, TrainLikeTheSingleRank) {
  const auto& [key_value_heads, layout] = GetParam();
  const std::vector<StepResult> expected = RunOrDie(Job({}, key_value_heads), {.steps = kSteps});
  ExpectClose(RunOrDie(Job(layout, key_value_heads), {.steps = kSteps}), expected);
  EXPECT_LT(expected.back().event.loss(), expected.front().event.loss() - 0.1)
      << "nothing was learnt: the comparison is idle";
}

INSTANTIATE_TEST_SUITE_P(
    TwoOfFour, GroupedHeads,
    ::testing::Combine(::testing::Values(2),
                       ::testing::Values(Layout{.data = 2}, Layout{.tensor = 2},
                                         Layout{.tensor = 2, .by_rows = true}, Layout{.pipe = 2},
                                         Layout{.tensor = 2, .pipe = 2},
                                         Layout{.data = 2, .tensor = 2, .pipe = 2},
                                         Layout{.shard = 2, .zero_stage = 3},
                                         Layout{.tensor = 2, .shard = 2, .zero_stage = 3},
                                         Layout{.context = 2}, Layout{.context = 4},
                                         Layout{.tensor = 2, .context = 2},
                                         Layout{.context = 2, .exchanges_heads = true})),
    [](const auto& info) { return NameOf(std::get<1>(info.param)); });

INSTANTIATE_TEST_SUITE_P(OneOfFour, GroupedHeads,
                         ::testing::Combine(::testing::Values(1),
                                            ::testing::Values(Layout{.data = 2}, Layout{.pipe = 2},
                                                              Layout{.shard = 3, .zero_stage = 3},
                                                              Layout{.context = 2},
                                                              Layout{.pipe = 2, .context = 2})),
                         [](const auto& info) { return NameOf(std::get<1>(info.param)); });

// More tensor ranks than key-value heads: neighbouring ranks hold the same head.
constexpr Layout kShared[] = {
    {.tensor = 4},
    {.tensor = 4, .by_rows = true},
    {.data = 2, .tensor = 4},
    {.tensor = 4, .pipe = 2, .by_rows = true},
    {.tensor = 4, .shard = 2, .zero_stage = 1},
    {.tensor = 4, .shard = 2, .zero_stage = 2},
    {.tensor = 4, .pipe = 2, .shard = 2, .zero_stage = 3, .by_rows = true},
    {.tensor = 4, .shard = 3, .zero_stage = 3},
    {.tensor = 4, .context = 2},
    {.tensor = 4, .context = 2, .by_rows = true},
};

INSTANTIATE_TEST_SUITE_P(SharedByTensorRanks, GroupedHeads,
                         ::testing::Combine(::testing::Values(1, 2), ::testing::ValuesIn(kShared)),
                         NameOfCase);

INSTANTIATE_TEST_SUITE_P(
    OneSharedByTwo, GroupedHeads,
    ::testing::Combine(::testing::Values(1),
                       ::testing::Values(Layout{.tensor = 2}, Layout{.tensor = 2, .by_rows = true},
                                         Layout{.data = 2, .tensor = 2, .pipe = 2},
                                         Layout{.tensor = 2, .shard = 2, .zero_stage = 1},
                                         Layout{.tensor = 2, .shard = 2, .zero_stage = 3},
                                         Layout{.tensor = 2, .context = 2})),
    NameOfCase);

class SharedHeads : public ::testing::TestWithParam<int> {};

// Each rank of a group of neighbours has the head, one of them writes it with its optimizer state,
// and every layout reads it.
TEST_P(SharedHeads, GoOnUnderOtherDegrees) {
  const TemporaryDirectory folder;
  const std::vector<StepResult> whole = RunOrDie(Job({}, GetParam()), {.steps = kSteps});
  const auto steps = [&](size_t first, size_t end) {
    return std::vector<StepResult>(whole.begin() + static_cast<ptrdiff_t>(first),
                                   whole.begin() + static_cast<ptrdiff_t>(end));
  };
  std::string from;
  size_t done = 0;
  for (const Layout& layout :
       {Layout{.tensor = 4}, Layout{}, Layout{.tensor = 2},
        Layout{.tensor = 4, .shard = 2, .zero_stage = 3}, Layout{.tensor = 4, .context = 2}}) {
    SCOPED_TRACE(NameOf(layout));
    const std::string saved = folder.Child(fmt::format("step-{:08}-epoch-1-attempt-1", done + 2));
    ExpectClose(
        RunOrDie(Job(layout, GetParam()), {.steps = 2, .restore_path = from, .save_path = saved}),
        steps(done, done + 2));
    from = saved;
    done += 2;
  }
}

INSTANTIATE_TEST_SUITE_P(Heads, SharedHeads, ::testing::Values(1, 2),
                         [](const auto& info) { return fmt::format("{}Of4", info.param); });

TEST(GroupedHeads, AreAnotherModelThanWholeOnes) {
  EXPECT_NE(RunOrDie(Job({}, 2), {.steps = 1}).back().event.grad_norm(),
            RunOrDie(Job({}, 4), {.steps = 1}).back().event.grad_norm());
}

class MixturesWithGroupedHeads : public ::testing::TestWithParam<Spread> {};

TEST_P(MixturesWithGroupedHeads, TrainLikeTheSingleRank) {
  const Spread single{.key_value_heads = GetParam().key_value_heads};
  ExpectClose(RunOrDie(Mixture(GetParam(), kSteps), {.steps = kSteps}),
              RunOrDie(Mixture(single, kSteps), {.steps = kSteps}));
}

INSTANTIATE_TEST_SUITE_P(
    Spreads, MixturesWithGroupedHeads,
    ::testing::Values(Spread{.expert = 2, .key_value_heads = 2},
                      Spread{.expert = 2, .tensor = 2, .key_value_heads = 2},
                      Spread{.expert = 2, .tensor = 2, .key_value_heads = 1},
                      Spread{.context = 2, .ring = true, .key_value_heads = 2},
                      Spread{.expert = 2, .context = 2, .ring = true, .key_value_heads = 2},
                      Spread{.context = 2, .key_value_heads = 2}),
    [](const auto& info) { return NameOf(info.param); });

}  // namespace
}  // namespace troupe
