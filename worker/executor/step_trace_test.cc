#include "worker/executor/step_trace.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

void OneStep(StepTrace& trace, int64_t step) {
  trace.BeginStep(step);
  trace.Enter(Phase::kForward, 0, 1);
  trace.Enter(Phase::kBackward, 0, 1);
  trace.EndStep();
}

TEST(StepTraceTest, APhaseLastsFromItsBeginToTheNextOnes) {
  StepTrace trace;
  OneStep(trace, 7);
  const StepTrace::Snapshot taken = trace.Capture(7, 7);
  ASSERT_EQ(taken.intervals.size(), 3u);
  EXPECT_EQ(taken.intervals[0].phase, Phase::kForward);
  EXPECT_EQ(taken.intervals[1].phase, Phase::kBackward);
  EXPECT_EQ(taken.intervals[0].end, taken.intervals[1].begin);
  EXPECT_EQ(taken.intervals[2].phase, Phase::kIdle);
  EXPECT_LE(taken.intervals[2].begin, taken.intervals[0].begin);
  EXPECT_EQ(taken.intervals[2].end, taken.intervals[1].end);
  EXPECT_EQ(taken.first_held_step, 7);
  EXPECT_EQ(taken.last_held_step, 7);
}

TEST(StepTraceTest, OnlyStepsOfWhichNothingWasForgottenAreHeld) {
  StepTrace trace(/*intervals=*/7);
  for (int64_t step = 1; step <= 5; ++step) OneStep(trace, step);
  // The ring keeps the last 7 of 15 intervals: one of step 3, and those of 4 and 5.
  const StepTrace::Snapshot taken = trace.Capture(1, 5);
  EXPECT_EQ(taken.intervals.size(), 7u);
  EXPECT_EQ(taken.first_held_step, 4);
  EXPECT_EQ(taken.last_held_step, 5);
}

TEST(StepTraceTest, NothingIsHeldBeforeTheFirstStepEnds) {
  StepTrace trace;
  trace.BeginStep(4);
  const StepTrace::Snapshot taken = trace.Capture(1, 100);
  EXPECT_GT(taken.first_held_step, taken.last_held_step);
}

TEST(StepTraceTest, OperationsAreKeptOfTheStepsAskedForUpToTheirBound) {
  StepTrace trace(100, /*operations_max=*/2);
  trace.AskForOperations(2, 3);
  trace.BeginStep(1);
  EXPECT_FALSE(trace.wants_operations());
  trace.EndStep();
  trace.BeginStep(2);
  EXPECT_TRUE(trace.wants_operations());
  trace.Enter(Phase::kForward, 0, 0);
  for (const char* name : {"a", "b", "c"}) trace.Ran({}, name, 0);
  trace.EndStep();
  const StepTrace::Snapshot taken = trace.Capture(2, 2);
  ASSERT_EQ(taken.operations.size(), 2u);
  EXPECT_STREQ(taken.operations[0].name, "a");
  EXPECT_EQ(taken.operations[0].end, taken.operations[1].begin);
  EXPECT_EQ(taken.dropped_operations, 1);
  EXPECT_TRUE(trace.Capture(3, 3).operations.empty());
}

}  // namespace
}  // namespace troupe
