#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "plan/schedules/schedules.h"
#include "plan/schedules/simulator.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

std::string TextOf(const Schedule& schedule) {
  std::string text;
  for (const auto& actions : schedule.actions) {
    for (const Action& action : actions) text += ToText(action) + " ";
    text.back() = '\n';
  }
  return text;
}

Schedule OneForwardOneBackward(int stages, int microbatches) {
  return MakeSchedule(ScheduleKind::k1F1B, {stages, 1, microbatches});
}

TEST(ActionTest, TextAndParsingAreInverse) {
  for (const char* text : {"F0.1", "B12.345", "I3.0", "W1.7"}) {
    EXPECT_EQ(ToText(*ParseAction(text)), text);
  }
  for (const char* text : {"", "F", "X0.1", "F0", "F0.", "F.1", "F0.1 ", "F-1.2", "F0.-1"}) {
    EXPECT_FALSE(ParseAction(text).ok()) << text;
  }
}

TEST(OneForwardOneBackwardTest, FourStagesSixMicrobatchesAreGolden) {
  EXPECT_EQ(TextOf(OneForwardOneBackward(4, 6)),
            "F0.0 F0.1 F0.2 F0.3 B0.0 F0.4 B0.1 F0.5 B0.2 B0.3 B0.4 B0.5\n"
            "F1.0 F1.1 F1.2 B1.0 F1.3 B1.1 F1.4 B1.2 F1.5 B1.3 B1.4 B1.5\n"
            "F2.0 F2.1 B2.0 F2.2 B2.1 F2.3 B2.2 F2.4 B2.3 F2.5 B2.4 B2.5\n"
            "F3.0 B3.0 F3.1 B3.1 F3.2 B3.2 F3.3 B3.3 F3.4 B3.4 F3.5 B3.5\n");
}

TEST(OneForwardOneBackwardTest, FewerMicrobatchesThanStagesAreGolden) {
  EXPECT_EQ(TextOf(OneForwardOneBackward(4, 2)),
            "F0.0 F0.1 B0.0 B0.1\n"
            "F1.0 F1.1 B1.0 B1.1\n"
            "F2.0 F2.1 B2.0 B2.1\n"
            "F3.0 B3.0 F3.1 B3.1\n");
  EXPECT_EQ(TextOf(OneForwardOneBackward(1, 3)), "F0.0 B0.0 F0.1 B0.1 F0.2 B0.2\n");
}

TEST(OneForwardOneBackwardTest, IdleAndPeakAreTheTablesForEveryShape) {
  for (int stages = 1; stages <= 16; ++stages) {
    for (int microbatches = 1; microbatches <= 40; ++microbatches) {
      const std::vector<ActionCosts> costs(stages);
      const auto result = Simulate(OneForwardOneBackward(stages, microbatches), costs);
      ASSERT_TRUE(result.ok()) << result.status();
      EXPECT_DOUBLE_EQ(result->makespan, 3.0 * (microbatches + stages - 1));
      EXPECT_DOUBLE_EQ(result->bubble_ratio,
                       static_cast<double>(stages - 1) / (microbatches + stages - 1));
      for (int rank = 0; rank < stages; ++rank) {
        EXPECT_DOUBLE_EQ(result->idle[rank], 3.0 * (stages - 1));
        EXPECT_EQ(result->peak_live_activations[rank], std::min(microbatches, stages - rank));
      }
    }
  }
}

TEST(SimulatorTest, UnequalCostsGiveThePublishedShare) {
  // The published share for P=8, M=32, F:I:W = 1 : 1.5 : 0.8.
  const auto result =
      Simulate(OneForwardOneBackward(8, 32), std::vector<ActionCosts>(8, {1, 1.5, 0.8}));
  EXPECT_NEAR(result->bubble_ratio, 0.179, 0.001);
}

TEST(SimulatorTest, ActionsHaveTheirTimesWhereTheyAreAskedFor) {
  const Schedule schedule = OneForwardOneBackward(2, 2);
  EXPECT_TRUE(Simulate(schedule, std::vector<ActionCosts>(2))->spans.empty());
  const auto result = Simulate(schedule, std::vector<ActionCosts>(2), {.spans = true});
  ASSERT_TRUE(result.ok()) << result.status();
  std::string text;
  for (const auto& spans : result->spans) {
    for (const ActionSpan& span : spans) text += fmt::format("{}-{} ", span.begin, span.end);
  }
  // F0.0 F0.1 B0.0 B0.1, then F1.0 B1.0 F1.1 B1.1.
  EXPECT_EQ(text, "0-1 1-2 4-6 7-9 1-2 2-4 4-5 5-7 ");
}

TEST(SimulatorTest, RefusesSchedulesThatAreWrong) {
  const auto broken = [](auto change) {
    Schedule schedule = OneForwardOneBackward(2, 2);
    change(&schedule);
    const auto result = Simulate(schedule, std::vector<ActionCosts>(2));
    return std::string(Message(result.status()));
  };
  EXPECT_THAT(broken([](Schedule* s) { s->actions[0].pop_back(); }), HasSubstr("has no backward"));
  EXPECT_THAT(broken([](Schedule* s) { s->actions[0].push_back(s->actions[0][0]); }),
              HasSubstr("F0.0 appears twice"));
  EXPECT_THAT(broken([](Schedule* s) { std::swap(s->actions[1][0], s->actions[1][1]); }),
              HasSubstr("B1.0 runs before"));
  EXPECT_THAT(broken([](Schedule* s) { s->actions[1][0].chunk = 0; }),
              HasSubstr("does not belong on rank 1"));
  // Rank 0 needs the backward of 0 before it sends the forward of 1, rank 1 the other way round.
  EXPECT_THAT(broken([](Schedule* s) {
                s->actions[0] = {*ParseAction("F0.0"), *ParseAction("B0.0"), *ParseAction("F0.1"),
                                 *ParseAction("B0.1")};
                s->actions[1] = {*ParseAction("F1.0"), *ParseAction("F1.1"), *ParseAction("B1.0"),
                                 *ParseAction("B1.1")};
              }),
              HasSubstr("waits forever"));
}

}  // namespace
}  // namespace troupe
