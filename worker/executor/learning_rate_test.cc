#include "worker/executor/learning_rate.h"

#include <gtest/gtest.h>

#include <cmath>

#include "plan/job/key_effects.h"
#include "plan/job/key_schema.h"

namespace troupe {
namespace {

LearningRateSchedule RateSchedule(v1::DecayType type) {
  LearningRateSchedule schedule;
  schedule.peak = 2.0;
  schedule.warmup_steps = 10;
  schedule.decay_type = type;
  schedule.decay_steps = 110;
  schedule.min_factor = 0.1;
  schedule.decay_ratio = 0.2;
  return schedule;
}

TEST(LearningRate, RisesInALineFromTheFirstStepAndReachesThePeakAtTheLastWarmUpStep) {
  for (v1::DecayType type : {v1::DECAY_TYPE_CONSTANT, v1::DECAY_TYPE_LINEAR, v1::DECAY_TYPE_COSINE,
                             v1::DECAY_TYPE_WSD, v1::DECAY_TYPE_INVERSE_SQRT}) {
    EXPECT_DOUBLE_EQ(LearningRate(RateSchedule(type), 1), 0.2);
    EXPECT_DOUBLE_EQ(LearningRate(RateSchedule(type), 5), 1.0);
    EXPECT_DOUBLE_EQ(LearningRate(RateSchedule(type), 10), 2.0);
  }
}

TEST(LearningRate, WithoutWarmUpStartsAtThePeak) {
  LearningRateSchedule schedule = RateSchedule(v1::DECAY_TYPE_CONSTANT);
  schedule.warmup_steps = 0;
  EXPECT_DOUBLE_EQ(LearningRate(schedule, 1), 2.0);
}

TEST(LearningRate, EachDecayPassesItsMiddleAndEndsAtTheMinimum) {
  EXPECT_DOUBLE_EQ(LearningRate(RateSchedule(v1::DECAY_TYPE_CONSTANT), 1000), 2.0);
  EXPECT_DOUBLE_EQ(LearningRate(RateSchedule(v1::DECAY_TYPE_LINEAR), 60), 2.0 * 0.55);
  EXPECT_DOUBLE_EQ(LearningRate(RateSchedule(v1::DECAY_TYPE_COSINE), 60), 2.0 * 0.55);
  EXPECT_NEAR(LearningRate(RateSchedule(v1::DECAY_TYPE_COSINE), 35),
              2.0 * (0.1 + 0.9 * 0.5 * (1 + std::sqrt(0.5))), 1e-15);
  // Constant until 110 · 0.8 = 88, then 22 steps of decay.
  EXPECT_DOUBLE_EQ(LearningRate(RateSchedule(v1::DECAY_TYPE_WSD), 88), 2.0);
  EXPECT_DOUBLE_EQ(LearningRate(RateSchedule(v1::DECAY_TYPE_WSD), 99), 2.0 * 0.55);
  for (v1::DecayType type : {v1::DECAY_TYPE_LINEAR, v1::DECAY_TYPE_COSINE, v1::DECAY_TYPE_WSD}) {
    EXPECT_NEAR(LearningRate(RateSchedule(type), 110), 0.2, 1e-15);
    EXPECT_NEAR(LearningRate(RateSchedule(type), 500), 0.2, 1e-15);
  }
}

TEST(LearningRate, InverseSquareRootFallsWithTheStepDownToTheMinimum) {
  const LearningRateSchedule schedule = RateSchedule(v1::DECAY_TYPE_INVERSE_SQRT);
  EXPECT_DOUBLE_EQ(LearningRate(schedule, 40), 1.0);
  EXPECT_DOUBLE_EQ(LearningRate(schedule, 1000), 0.2);
  EXPECT_DOUBLE_EQ(LearningRate(schedule, 100000), 0.2);
}

bool Differ(const LearningRateSchedule& a, const LearningRateSchedule& b) {
  for (int64_t step = 1; step <= 2000; ++step) {
    if (LearningRate(a, step) != LearningRate(b, step)) return true;
  }
  return false;
}

TEST(LearningRate, KeysThatAreReportedToHaveNoEffectHaveNone) {
  for (const char* const type : {"constant", "linear", "cosine", "wsd", "inverse_sqrt"}) {
    SCOPED_TRACE(type);
    v1::JobSpec spec;
    spec.mutable_lr_schedule()->set_decay_type(type);
    const LearningRateSchedule schedule = RateSchedule(FindWord<v1::DecayType>(type).value());
    LearningRateSchedule steps = schedule, ratio = schedule, factor = schedule;
    steps.decay_steps *= 2;
    ratio.decay_ratio *= 2;
    factor.min_factor *= 2;
    EXPECT_EQ(Differ(schedule, steps), WhyWithoutEffect(spec, "lr_schedule.decay_steps").empty());
    EXPECT_EQ(Differ(schedule, ratio), WhyWithoutEffect(spec, "lr_schedule.decay_ratio").empty());
    EXPECT_EQ(Differ(schedule, factor),
              WhyWithoutEffect(spec, "lr_schedule.min_lr_factor").empty());
  }
}

}  // namespace
}  // namespace troupe
