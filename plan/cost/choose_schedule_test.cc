#include "plan/cost/choose_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iterator>

namespace troupe {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

// A stage costs 1, 1, 1 (F, I, W) and the model has at most `blocks` chunks.
CostsOfSchedule EqualCosts(int stages, int blocks, ActionCosts stage = {}) {
  return [=](const Schedule& schedule) -> StatusOr<ScheduleCosts> {
    const int chunks = stages * static_cast<int>(schedule.chunks[0].size());
    if (chunks > blocks)
      return InvalidArgument("{} blocks cannot be split into {}", blocks, chunks);
    const double part = static_cast<double>(stages) / chunks;
    return ScheduleCosts{std::vector<ActionCosts>(
        chunks, {part * stage.forward, part * stage.input_gradient, part * stage.weight_gradient})};
  };
}

TEST(ChooseScheduleTest, TheShortestStepWinsAndTheReasonIsGiven) {
  const auto choice = ChooseSchedule(8, std::nullopt, 32, EqualCosts(8, 16), EverySchedule());
  ASSERT_TRUE(choice.ok()) << choice.status();
  // ZBV and DualPipeV take the same time; ZBV keeps 2P chunks live, not 2P+1.
  EXPECT_EQ(choice->kind, ScheduleKind::kZeroBubbleV);
  EXPECT_EQ(choice->shape.chunks_per_stage, 2);
  ASSERT_EQ(choice->reasons.size(), std::size(kScheduleKinds));
  EXPECT_THAT(choice->reasons[0],
              HasSubstr("chosen: ZBV with 2 chunks per stage: step time 1.000"));
  EXPECT_THAT(choice->reasons[0], HasSubstr("bubble 3.5%, at most 8 microbatches in flight"));
  EXPECT_THAT(choice->reasons[1], HasSubstr("DualPipeV"));
}

TEST(ChooseScheduleTest, ABoundSparesTheCostsOfASchedule) {
  const auto all = ChooseSchedule(8, std::nullopt, 32, EqualCosts(8, 16), EverySchedule());
  ASSERT_TRUE(all.ok());
  int costed = 0;
  const auto costs = [&](const Schedule& schedule) {
    ++costed;
    return EqualCosts(8, 16)(schedule);
  };
  const auto choice = ChooseSchedule(8, std::nullopt, 32, costs,
                                     {{ScheduleKind::kZeroBubbleV, 1},
                                      {ScheduleKind::kDualPipeV, 1},
                                      {ScheduleKind::kGPipe, 1e9},
                                      {ScheduleKind::k1F1B, 1e9}});
  ASSERT_TRUE(choice.ok());
  EXPECT_EQ(choice->kind, all->kind);
  EXPECT_EQ(costed, 2);
}

TEST(ChooseScheduleTest, WithFewBlocksSchedulesOfOneChunkRemain) {
  const auto choice = ChooseSchedule(4, std::nullopt, 16, EqualCosts(4, 7), EverySchedule());
  ASSERT_TRUE(choice.ok());
  EXPECT_EQ(choice->kind, ScheduleKind::kZeroBubbleH1);
  EXPECT_THAT(choice->reasons,
              Contains(HasSubstr("ZBV with 2 chunks per stage: cannot run: 7 blocks "
                                 "cannot be split into 8")));
}

TEST(ChooseScheduleTest, CheapWeightGradientsTakeTheAdvantageOfPuttingThemOff) {
  // There is nothing to fill bubbles with, so interleaving, which shortens them, is the only
  // option.
  const auto choice =
      ChooseSchedule(4, std::nullopt, 16, EqualCosts(4, 8, {1, 2, 0.001}), EverySchedule());
  ASSERT_TRUE(choice.ok());
  EXPECT_NE(choice->kind, ScheduleKind::kZeroBubbleH1);
  // One stage has no bubble: the least memory, in the fewest chunks, wins.
  const auto alone = ChooseSchedule(1, std::nullopt, 16, EqualCosts(1, 8), EverySchedule());
  EXPECT_EQ(alone->kind, ScheduleKind::k1F1B);
}

TEST(ChooseScheduleTest, TheUsersNumberOfChunksIsKept) {
  const auto choice = ChooseSchedule(4, 3, 16, EqualCosts(4, 12), EverySchedule());
  ASSERT_TRUE(choice.ok());
  EXPECT_EQ(choice->shape.chunks_per_stage, 3);
  const auto none = ChooseSchedule(2, 3, 7, EqualCosts(2, 12), EverySchedule());
  EXPECT_EQ(none.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Message(none.status())), HasSubstr("7 mod 3 = 1"));
}

}  // namespace
}  // namespace troupe
