// Resumes from every layout under every layout: the steps are those without an interruption. Each
// case is one source, which trains and saves once; every target resumes from its checkpoint in
// `./run test full`. Else every fourth does, or every eighth in an instrumented build, and others
// for the next source.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <tuple>

#include "base/temporary_directory.h"
#include "base/testing/test_extent.h"
#include "tests/layouts/expect_steps.h"

namespace troupe {
namespace {

constexpr int64_t kStepsBefore = 3;
constexpr int64_t kStepsAfter = 3;

// Every degree, alone and combined, and several chunks per stage. Data 3 splits the twelve
// microbatches differently from 2 or 4, so a wrong sample position would be visible.
constexpr Layout kLayouts[] = {{1, 1, 1},
                               {2, 1, 1},
                               {3, 1, 1},
                               {4, 1, 1},
                               {1, 2, 1},
                               {1, 4, 1},
                               {1, 1, 2},
                               {1, 1, 4},
                               {2, 2, 1},
                               {1, 2, 2},
                               {3, 1, 2},
                               {2, 2, 2},
                               {1, 1, 1, 2, 1},
                               {1, 1, 1, 3, 1},
                               {1, 2, 2, 2, 1},
                               {1, 1, 1, 2, 2},
                               {2, 1, 1, 2, 3},
                               {1, 2, 2, 2, 3},
                               {1, 1, 2, 2, 3, "ZBV"},
                               {2, 1, 2, 1, 1, "Interleaved1F1B"},
                               {1, 2, 2, 1, 1, "DualPipeV"},
                               {.tensor = 2, .context = 2, .by_rows = true},
                               {.pipe = 2, .shard = 2, .zero_stage = 3, .context = 2},
                               {.data = 3, .context = 4, .exchanges_heads = true}};

std::string NameOf(const Layout& layout) {
  std::string name = fmt::format("Data{}Tensor{}Pipe{}", layout.data, layout.tensor, layout.pipe);
  if (layout.shard > 1) name += fmt::format("Shard{}Zero{}", layout.shard, layout.zero_stage);
  if (layout.context > 1) name += fmt::format("Context{}", layout.context);
  if (layout.schedule != std::string_view("1F1B")) name += layout.schedule;
  return name;
}

class ReshardTable : public ::testing::TestWithParam<std::tuple<Layout, bool>> {};

TEST_P(ReshardTable, GoesOnUnderEveryLayout) {
  const auto [source, tied] = GetParam();
  const auto job = [tied = tied](const Layout& layout) {
    v1::JobSpec spec = SmallJob(layout, SmallDataPrefix(), kStepsBefore + kStepsAfter);
    spec.mutable_model()->set_tie_word_embeddings(tied);
    spec.mutable_lr_schedule()->set_decay_type("cosine");
    return spec;
  };
  const TemporaryDirectory folder;
  const std::string attempt = folder.Child("step-00000003-epoch-1-attempt-1");
  std::vector<StepResult> uninterrupted =
      RunOrDie(job(source), {.steps = kStepsBefore + kStepsAfter});
  RunOrDie(job(source), {.steps = kStepsBefore, .save_path = attempt});
  uninterrupted.erase(uninterrupted.begin(), uninterrupted.begin() + kStepsBefore);
  ASSERT_NE(uninterrupted[0].event.loss(), uninterrupted[1].event.loss());
  const std::string source_name = NameOf(source);
  const auto is_source = [&](const Layout& layout) { return NameOf(layout) == source_name; };
  const int every = RunsWholeTables() ? 1 : kInstrumented ? 8 : 4;
  const auto first = std::ranges::find_if(kLayouts, is_source) - std::begin(kLayouts);
  for (size_t i = first % every; i < std::size(kLayouts); i += every) {
    const Layout& target = kLayouts[i];
    SCOPED_TRACE(NameOf(target));
    const std::vector<StepResult> resumed =
        RunOrDie(job(target), {.steps = kStepsAfter, .restore_path = attempt});
    if (is_source(target)) {
      ExpectIdentical(resumed, uninterrupted);
    } else {
      ExpectClose(resumed, uninterrupted);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(From, ReshardTable,
                         ::testing::Combine(::testing::ValuesIn(kLayouts), ::testing::Bool()),
                         [](const auto& info) {
                           return NameOf(std::get<0>(info.param)) +
                                  (std::get<1>(info.param) ? "Tied" : "");
                         });

}  // namespace
}  // namespace troupe
