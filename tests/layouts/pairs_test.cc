// Compares overlapped pairs with interleaved actions to pairs that run one action after the other:
// the bits are identical and less communication is exposed. Ranks are threads over loopback.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/testing/test_extent.h"
#include "plan/make_plan.h"
#include "tests/layouts/expect_steps.h"
#include "tests/layouts/experts_job.h"
#include "tests/layouts/training.h"

namespace troupe {
namespace {

constexpr int64_t kSteps = 3;

v1::JobSpec PairsJob(Spread spread, bool tied = false) {
  spread.schedule = "DualPipeV";
  v1::JobSpec spec = Mixture(spread, kSteps);
  spec.mutable_model()->set_tie_word_embeddings(tied);
  spec.mutable_training()->set_global_batch_size(12 * spread.expert * spread.data * spread.shard);
  return spec;
}

class Pairs : public ::testing::TestWithParam<Spread> {};

TEST_P(Pairs, InterleavedHaveTheBitsOfOneActionAfterTheOther) {
  for (const bool tied : {false, true}) {
    SCOPED_TRACE(tied ? "tied" : "untied");
    const v1::JobSpec spec = PairsJob(GetParam(), tied);
    ASSERT_TRUE(MakeUnplacedPlan(spec)->schedule().interleaves_pairs());
    ExpectIdentical(RunOrDie(spec, {.steps = kSteps}),
                    RunOrDie(spec, {.steps = kSteps, .interleave_pairs = false}));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, Pairs,
    ::testing::Values(
        Spread{.expert = 2}, Spread{.expert = 2, .pipe = 2}, Spread{.pipe = 2, .tensor = 2},
        Spread{.pipe = 2, .context = 2}, Spread{.expert = 2, .pipe = 2, .gathers = true},
        Spread{.expert = 2, .pipe = 2, .shard = 2, .zero_stage = 2},
        Spread{.expert = 2, .pipe = 2, .shard = 2, .zero_stage = 3},
        Spread{.expert = 2, .pipe = 2, .tensor = 2, .over_tensor = true, .by_rows = true}),
    [](const auto& info) { return NameOf(info.param); });

TEST(PairsTest, OverALinkWithLatencyLessOfDispatchAndCombineIsExposed) {
  // Two ranks of one stage with six microbatches each. Messages take far longer than the
  // computation, so only the exchange of the other microbatch of a pair hides an exchange.
  constexpr auto kDelay = std::chrono::milliseconds(20);
  v1::JobSpec spec = PairsJob({.expert = 2});
  spec.mutable_training()->set_global_batch_size(12);
  const auto exposed = [&](bool interleaves) {
    const TrainResult result =
        Train(spec, {.steps = 1, .interleave_pairs = interleaves, .message_delay = kDelay});
    for (const Status& status : result.statuses) EXPECT_TRUE(status.ok()) << status;
    return result.communication[0][static_cast<size_t>(Purpose::kDispatch)].exposed;
  };
  const double apart = exposed(false), interleaved = exposed(true);
  fmt::print(
      "exposed dispatch and combination of a step: {:.3f} s one action after the other, {:.3f} s "
      "interleaved\n",
      apart, interleaved);
  // 12 forwards with three exchanges each and 12 backwards with two; ten pairs each hide up to two
  // of their five exchanges.
  // Slow instrumented code hides a part of the messages.
  constexpr double kExposedShare = kInstrumented ? 0.8 : 0.95;
  EXPECT_GT(apart, kExposedShare * 60 * ToSeconds(kDelay));
  EXPECT_LT(interleaved, 0.85 * apart);
}

}  // namespace
}  // namespace troupe
