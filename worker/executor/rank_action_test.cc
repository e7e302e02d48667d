#include "worker/executor/rank_action.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> Texts(const ActionList& list) {
  std::vector<std::string> texts;
  for (const RankAction& action : list.actions) texts.push_back(ToText(action));
  return texts;
}

TEST(Actions, OneStageNeitherSendsNorReceivesAndReusesItsOneBuffer) {
  const auto list = MakeActions({"F0.0", "B0.0", "F0.1", "B0.1"}, {0}, 1, 2);
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_THAT(Texts(*list), ElementsAre("F0.0 b0", "B0.0 b0", "F0.1 b0", "B0.1 b0"));
  EXPECT_THAT(list->buffers, ElementsAre(1));
  EXPECT_FALSE(list->split_backward);
}

TEST(Actions, AFirstStageKeepsAsManyBuffersAsMicrobatchesAliveAndSendsForward) {
  const auto list = MakeActions({"F0.0", "F0.1", "B0.0", "F0.2", "B0.1", "B0.2"}, {0}, 2, 3);
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_THAT(Texts(*list), ElementsAre("F0.0 b0 S", "F0.1 b1 S", "R B0.0 b0", "F0.2 b0 S",
                                        "R B0.1 b1", "R B0.2 b0"));
  EXPECT_THAT(list->buffers, ElementsAre(2));
}

TEST(Actions, AMiddleStageReceivesAndSendsBothWays) {
  const auto list = MakeActions({"F1.0", "B1.0"}, {1}, 3, 1);
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_THAT(Texts(*list), ElementsAre("R F1.0 b0 S", "R B1.0 b0 S"));
}

TEST(Actions, ASplitBackwardKeepsTheBufferUntilTheWeightGradient) {
  const auto list = MakeActions({"F0.0", "I0.0", "F0.1", "W0.0", "I0.1", "W0.1"}, {0}, 1, 2);
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_TRUE(list->split_backward);
  EXPECT_THAT(list->buffers, ElementsAre(2));
}

TEST(Actions, TheFirstRunOfEachPieceIsMarkedWhateverItsMicrobatch) {
  const auto list = MakeActions({"F0.1", "B0.1", "F0.0", "B0.0"}, {0}, 1, 2);
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_TRUE(list->actions[0].first_microbatch);
  EXPECT_TRUE(list->actions[1].first_microbatch);
  EXPECT_FALSE(list->actions[2].first_microbatch);
  EXPECT_FALSE(list->actions[3].first_microbatch);
}

TEST(Actions, AScheduleThatDoesNotHoldTogetherIsRefusedNamingTheAction) {
  const auto refused = [](std::vector<std::string> schedule, const char* text) {
    const auto list = MakeActions(schedule, {0}, 1, 2);
    ASSERT_FALSE(list.ok()) << text;
    EXPECT_THAT(std::string(Message(list.status())), HasSubstr(text));
  };
  refused({"X0.0"}, "\"X0.0\"");
  refused({"F0"}, "\"F0\"");
  refused({"F0.0x"}, "\"F0.0x\"");
  refused({"F1.0"}, "not this rank's");
  refused({"F0.2"}, "not below 2");
  refused({"B0.0"}, "out of order");
  refused({"F0.0", "F0.0"}, "doubled");
  refused({"F0.0", "W0.0"}, "out of order");
  refused({"F0.0", "B0.0", "F0.1"}, "microbatch 1 unfinished");
}

}  // namespace
}  // namespace troupe
