#include "worker/executor/step_result.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "model/program/control_word.h"

namespace troupe {
namespace {

StepResult ResultOf(double loss, double weight, double sum_of_squares) {
  std::array<double, model::kControlLanes> control = {};
  control[model::kLaneLoss] = loss;
  control[model::kLaneWeight] = weight;
  control[model::kLaneSumOfSquares] = sum_of_squares;
  StepResult result;
  ReadControlWord(control, {.global_batch_size = 2, .sequence_length = 16}, &result);
  return result;
}

TEST(StepResultTest, LossAndNormAreMeansOverTheTargets) {
  const StepResult result = ResultOf(12, 8, 16);
  EXPECT_EQ(result.event.loss(), 1.5);
  EXPECT_EQ(result.event.grad_norm(), 0.5);
}

TEST(StepResultTest, WithoutATargetThereIsNoLossAndTheGradientIsZero) {
  const StepResult result = ResultOf(0, 0, 0);
  EXPECT_TRUE(std::isnan(result.event.loss()));
  EXPECT_FALSE(std::signbit(result.event.loss())) << "its text would have a sign";
  EXPECT_EQ(result.event.grad_norm(), 0);
  EXPECT_EQ(ResultOf(0, 0, 4).event.grad_norm(), 0) << "the update scales it by zero";
}

TEST(StepResultTest, AGradientThatIsNotFiniteStaysVisibleWithoutATarget) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_FALSE(std::isfinite(ResultOf(0, 0, infinity).event.grad_norm()));
  EXPECT_FALSE(std::isfinite(ResultOf(0, 0, std::nan("")).event.grad_norm()));
}

}  // namespace
}  // namespace troupe
