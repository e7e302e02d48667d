#include "worker/rank/affinity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

namespace troupe {
namespace {

using ::testing::ElementsAre;

TEST(Affinity, RanksThatFillTheHostGetCoresOfTheirOwn) {
  EXPECT_THAT(CoresOfRank({0, 1, 2, 3}, 2, 0, 2), ElementsAre(0, 1));
  EXPECT_THAT(CoresOfRank({0, 1, 2, 3}, 2, 1, 2), ElementsAre(2, 3));
}

TEST(Affinity, MoreRanksThanCoresShareThemInTurn) {
  EXPECT_THAT(CoresOfRank({4, 6}, 4, 0, 1), ElementsAre(4));
  EXPECT_THAT(CoresOfRank({4, 6}, 4, 1, 1), ElementsAre(6));
  EXPECT_THAT(CoresOfRank({4, 6}, 4, 2, 1), ElementsAre(4));
}

TEST(Affinity, AJobThatDoesNotFillTheHostIsNotPinned) {
  EXPECT_THAT(CoresOfRank({0, 1, 2, 3}, 1, 0, 2), ElementsAre(0, 1, 2, 3));
}

TEST(Affinity, PinningBindsTheCallingThread) {
  const int core = AllowedCores().back();
  std::vector<int> seen;
  std::thread thread([&] {
    ASSERT_TRUE(PinThisThread({core}).ok());
    seen = AllowedCores();
  });
  thread.join();
  EXPECT_THAT(seen, ElementsAre(core));
}

}  // namespace
}  // namespace troupe
