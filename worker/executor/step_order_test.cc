#include "worker/executor/step_order.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace troupe {
namespace {

using Move = StepOrder::Move;

// The moves of a rank, such as "s1 s2 c1 s3 …"; s: submits, c: completes, !: acts after, a: agrees
// on a ticket's end.
struct Results {
  std::function<void(StepOrder&, int64_t completed)> after = [](StepOrder&, int64_t) {};
  std::function<bool(int64_t step)> drains = [](int64_t) { return false; };
  std::function<bool(int64_t step)> stops = [](int64_t) { return false; };
  // The ticket end in a step's control word, and the one that ranks agree on when none is left.
  std::function<int64_t(int64_t step)> ticket_end = [](int64_t) { return int64_t{100}; };
  std::function<int64_t(int64_t submitted)> agreed = [](int64_t) { return int64_t{100}; };
};

std::string OrderOf(StepOrder order, const Results& results) {
  std::string text;
  for (int moves = 0; moves < 100; ++moves) {
    if (!text.empty()) text += ' ';
    switch (order.Next()) {
      case Move::kAgree:
        text += "a";
        order.Agreed(results.agreed(order.submitted()));
        break;
      case Move::kSubmit:
        order.Submitted(results.drains(order.submitted() + 1));
        text += "s" + std::to_string(order.submitted());
        break;
      case Move::kComplete:
        order.Completed(results.ticket_end(order.completed() + 1));
        text += "c" + std::to_string(order.completed());
        results.after(order, order.completed());
        break;
      case Move::kAct:
        text += "!" + std::to_string(order.submitted());
        order.Acted(results.stops(order.submitted()));
        break;
      case Move::kEnd:
        return text + "end";
    }
  }
  return text + "…";
}

TEST(StepOrderTest, WithoutALagEveryStepCompletesBeforeTheNext) {
  EXPECT_EQ(OrderOf(StepOrder(0, 0, 3), {}), "a s1 c1 s2 c2 s3 c3 end");
}

TEST(StepOrderTest, WithALagStepsAreSubmittedAhead) {
  EXPECT_EQ(OrderOf(StepOrder(1, 0, 4), {}), "a s1 s2 c1 s3 c2 s4 c3 c4 end");
  EXPECT_EQ(OrderOf(StepOrder(2, 6, 10), {}), "a s7 s8 s9 c7 s10 c8 c9 c10 end");
  EXPECT_EQ(OrderOf(StepOrder(1, 4, 4), {}), "end");
}

TEST(StepOrderTest, WhatAStepAsksForIsDoneAfterTheLastStepInFlight) {
  Results results;
  results.after = [](StepOrder& order, int64_t step) {
    if (step == 2) order.ActAfter(order.submitted());
  };
  EXPECT_EQ(OrderOf(StepOrder(0, 0, 4), results), "a s1 c1 s2 c2 !2 s3 c3 s4 c4 end");
  EXPECT_EQ(OrderOf(StepOrder(1, 0, 5), results), "a s1 s2 c1 s3 c2 c3 !3 s4 s5 c4 c5 end");
  results.stops = [](int64_t) { return true; };
  EXPECT_EQ(OrderOf(StepOrder(1, 0, 5), results), "a s1 s2 c1 s3 c2 c3 !3 end");
  // No step follows, so it acts after the last step.
  EXPECT_EQ(OrderOf(StepOrder(1, 0, 2), results), "a s1 s2 c1 c2 !2 end");
}

TEST(StepOrderTest, WhatIsDueAfterAStepWaitsForItsResultAndHoldsTheNextBack) {
  Results results;
  results.after = [](StepOrder& order, int64_t step) {
    if (step == 1) order.ActAfter(4);
  };
  EXPECT_EQ(OrderOf(StepOrder(1, 0, 6), results), "a s1 s2 c1 s3 c2 s4 c3 c4 !4 s5 s6 c5 c6 end");
}

TEST(StepOrderTest, AStepThatDrainsCompletesBeforeTheNext) {
  Results results;
  results.drains = [](int64_t step) { return step == 2; };
  EXPECT_EQ(OrderOf(StepOrder(1, 0, 4), results), "a s1 s2 c1 c2 s3 s4 c3 c4 end");
}

TEST(StepOrderTest, NoStepIsSubmittedBeyondTheTicketThatAllRanksKnow) {
  Results results;
  results.agreed = [](int64_t submitted) { return submitted + 2; };
  results.ticket_end = [](int64_t step) { return step < 3 ? 2 : 6; };
  // The control word of step 3 has a later end and is read before the ranks would have to agree
  // again.
  EXPECT_EQ(OrderOf(StepOrder(1, 0, 6), results), "a s1 s2 c1 c2 a s3 s4 c3 s5 c4 s6 c5 c6 end");
  // An older control word never moves an end back.
  results.ticket_end = [](int64_t) { return int64_t{1}; };
  EXPECT_EQ(OrderOf(StepOrder(1, 0, 4), results), "a s1 s2 c1 c2 a s3 s4 c3 c4 end");
}

TEST(StepOrderDeathTest, NothingIsDueAfterAStepThatIsBehind) {
  StepOrder order(1, 0, 4);
  order.Agreed(4);
  order.Submitted(false);
  EXPECT_DEATH(order.ActAfter(0), "too late");
}

}  // namespace
}  // namespace troupe
