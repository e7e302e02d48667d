#include "plan/cost/fault_cost.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/job/job_defaults.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

v1::JobSpec WithDefaults(v1::JobSpec spec) {
  ApplyDefaults(&spec);
  return spec;
}

TEST(FaultCost, IsHalfAnHourWhereNothingIsStated) {
  const v1::JobSpec spec = WithDefaults({});
  EXPECT_EQ(SecondsBetweenCheckpoints(spec), 1800);
  EXPECT_THAT(FaultCost(spec), HasSubstr("every 30 min: a fault costs at most 30 min"));
}

TEST(FaultCost, AStatedNumberOfStepsWins) {
  v1::JobSpec spec;
  spec.mutable_checkpoint()->set_interval(50);
  EXPECT_EQ(SecondsBetweenCheckpoints(WithDefaults(spec)), 0);
  EXPECT_THAT(FaultCost(WithDefaults(spec)), HasSubstr("at most 50 steps"));
  spec.mutable_checkpoint()->set_interval_seconds(60);
  EXPECT_EQ(SecondsBetweenCheckpoints(WithDefaults(spec)), 0);
}

TEST(FaultCost, AnIntervalBeyondTheEndIsTheFinalOneAlone) {
  v1::JobSpec spec;
  spec.mutable_training()->set_steps(5);
  spec.mutable_checkpoint()->set_interval(40);
  EXPECT_THAT(FaultCost(WithDefaults(spec)), HasSubstr("only the final checkpoint"));
  EXPECT_THAT(FaultCost(WithDefaults(spec)), testing::Not(HasSubstr("40")));
}

TEST(FaultCost, NoStepsAndNoTimeIsTheFinalOneAlone) {
  v1::JobSpec spec;
  spec.mutable_training()->set_steps(700);
  spec.mutable_checkpoint()->set_interval(0);
  EXPECT_EQ(SecondsBetweenCheckpoints(WithDefaults(spec)), 1800) << "no number of steps was stated";
  spec.mutable_checkpoint()->set_interval_seconds(0);
  EXPECT_EQ(SecondsBetweenCheckpoints(WithDefaults(spec)), 0);
  EXPECT_THAT(FaultCost(WithDefaults(spec)), HasSubstr("only the final checkpoint"));
  EXPECT_THAT(FaultCost(WithDefaults(spec)), HasSubstr("up to 700 steps"));
}

TEST(FaultCost, WithoutAFolderIsEverything) {
  v1::JobSpec spec;
  spec.mutable_checkpoint()->set_folder("");
  EXPECT_EQ(SecondsBetweenCheckpoints(WithDefaults(spec)), 0);
  EXPECT_THAT(FaultCost(WithDefaults(spec)), HasSubstr("no checkpoints"));
}

TEST(FaultCost, TimesReadAsPeopleWriteThem) {
  v1::JobSpec spec;
  spec.mutable_checkpoint()->set_interval_seconds(7200);
  EXPECT_THAT(FaultCost(WithDefaults(spec)), HasSubstr("every 2 h"));
  spec.mutable_checkpoint()->set_interval_seconds(90);
  EXPECT_THAT(FaultCost(WithDefaults(spec)), HasSubstr("every 90 s"));
}

}  // namespace
}  // namespace troupe
