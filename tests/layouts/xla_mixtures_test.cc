// Compares layouts of a mixture of experts on XLA's CPU plugin, with ranks as threads, with one
// rank on the CPU backend. Without the plugin every test is skipped with the reason.
#include <gtest/gtest.h>

#include <vector>

#include "tests/layouts/expect_steps.h"
#include "tests/layouts/experts_job.h"
#include "tests/layouts/training.h"
#include "tests/layouts/xla_programs.h"
#include "tests/layouts/xla_runs.h"

namespace troupe {
namespace {

const auto kName = [](const auto& info) { return NameOf(info.param); };

using XlaMixtures = WithXla<testing::TestWithParam<Spread>>;

TEST_P(XlaMixtures, HaveTheLossesOfOneRankOnTheCpu) {
  ExpectLossesOfOneRank(OnXla(), Mixture(GetParam(), kXlaSteps), Mixture({}, kXlaSteps));
}

INSTANTIATE_TEST_SUITE_P(OneRank, XlaMixtures, testing::Values(Spread{}), kName);
INSTANTIATE_TEST_SUITE_P(OneAxis, XlaMixtures, RowsOf(MixturesOfOneAxis(), 4, {{.expert = 2}}),
                         kName);
INSTANTIATE_TEST_SUITE_P(TwoAxes, XlaMixtures, RowsOf(MixturesOfTwoAxes(), 8), kName);
INSTANTIATE_TEST_SUITE_P(EightRanks, XlaMixtures, RowsOf(MixturesOfEightRanks(), 9), kName);
INSTANTIATE_TEST_SUITE_P(AllGather, XlaMixtures, RowsOf(MixturesThatGather(), 4), kName);
INSTANTIATE_TEST_SUITE_P(Schedules, XlaMixtures, RowsOf(MixturesBySchedule(), 4), kName);
INSTANTIATE_TEST_SUITE_P(RingContext, XlaMixtures, RowsOf(MixturesOnRings(), 4), kName);

using XlaMixtureRuns = WithXla<>;

// The capacity of an expert follows from the tokens of a rank's microbatch: these ranks drop what
// one rank drops.
TEST_F(XlaMixtureRuns, WithCapacityDropWhatOneRankDrops) {
  const auto job = [](const Spread& spread) {
    v1::JobSpec spec = Mixture(spread, kXlaSteps);
    spec.mutable_model()->set_capacity_factor(0.75);
    return spec;
  };
  const std::vector<StepResult> expected = RunOrDie(job({}), {.steps = kXlaSteps});
  EXPECT_GT(expected.front().dropped, 0);
  std::vector<Spread> spreads = {{.expert = 2},
                                 {.expert = 2, .data = 2},
                                 {.expert = 2, .pipe = 2},
                                 {.expert = 2, .gathers = true}};
  if (kInstrumented) spreads.resize(1);
  for (const Spread& spread : spreads) {
    SCOPED_TRACE(NameOf(spread));
    const std::vector<StepResult> steps = Prepared(RunOrDie, job(spread), OnXla());
    ExpectClose(steps, expected);
    EXPECT_EQ(steps.front().dropped, expected.front().dropped);
  }
}

}  // namespace
}  // namespace troupe
