#include "worker/rank/rank_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using testing::HasSubstr;

void OneStep(StepTrace& trace, int64_t step) {
  trace.BeginStep(step);
  trace.Enter(Phase::kForward, 1, 2);
  trace.EndStep();
}

// A collective that ends when it is issued, so that tests control all times.
RecordedOperation Collective(MonotonicTime issued) {
  return {.operation = CollectiveOperation::kAllReduce,
          .purpose = Purpose::kTensor,
          .axis = "tensor",
          .bytes = 64,
          .issued = issued,
          .finished = issued + std::chrono::microseconds(5),
          .exposed = std::chrono::microseconds(3)};
}

MonotonicTime BeginOf(const StepTrace& trace, int64_t step) {
  for (const TracedInterval& interval : trace.Capture(step, step).intervals) {
    if (interval.phase == Phase::kForward) return interval.begin;
  }
  ADD_FAILURE() << "step " << step;
  return {};
}

TEST(RankTraceTest, CollectivesBelongToTheStepInWhichTheyBegan) {
  StepTrace trace;
  for (int64_t step = 1; step <= 3; ++step) OneStep(trace, step);
  const TracedCollectives collectives{{Collective(BeginOf(trace, 1)), Collective(BeginOf(trace, 2)),
                                       Collective(BeginOf(trace, 3))}};
  const v1::RankTrace made = MakeRankTrace(trace, collectives, 2, 2);
  std::vector<std::string> texts;
  for (const v1::TraceEvent& event : made.events()) {
    EXPECT_EQ(event.step(), 2);
    texts.push_back(made.names(event.name()));
  }
  EXPECT_THAT(texts, testing::ElementsAre("F1.2", "step 2", "all_reduce"));
  const v1::TraceEvent& collective = made.events(2);
  EXPECT_EQ(made.names(collective.lane()), "tensor (tensor)");
  EXPECT_EQ(collective.bytes(), 64);
  EXPECT_EQ(collective.duration_ns(), 5000);
  EXPECT_EQ(collective.exposed_ns(), 3000);
  EXPECT_TRUE(CheckHeld(made, 1, 3).ok());
}

TEST(RankTraceTest, AStepWhoseCollectivesAreForgottenIsNotHeld) {
  StepTrace trace;
  for (int64_t step = 1; step <= 3; ++step) OneStep(trace, step);
  const TracedCollectives collectives{
      {Collective(BeginOf(trace, 2)), Collective(BeginOf(trace, 3))}, /*complete=*/false};
  const v1::RankTrace made = MakeRankTrace(trace, collectives, 1, 3);
  EXPECT_EQ(made.first_held_step(), 3);
  const Status status = CheckHeld(made, 1, 3);
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(Message(status)),
              HasSubstr("has a record of steps 3 to 3 of start 0 of the ranks, not of 1 to 3"));
  EXPECT_EQ(OnlySteps(made, 4, 9).events_size(), 0);
}

TEST(RankTraceTest, ARankThatMadeNoStepRemembersNone) {
  const v1::RankTrace made = MakeRankTrace(StepTrace(), {}, 1, 5);
  EXPECT_THAT(std::string(Message(CheckHeld(made, 1, 5))), HasSubstr("has no record of steps"));
}

TEST(RankTraceTest, WhatAnEndedRankRemembersIsStoredNextToItsLog) {
  EXPECT_EQ(RankTracePath("/logs/a/rank-3.worker-0.log"), "/logs/a/rank-3.worker-0.trace");
}

}  // namespace
}  // namespace troupe
