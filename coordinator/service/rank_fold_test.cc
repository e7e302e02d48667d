#include "coordinator/service/rank_fold.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

TEST(RankFold, NamesTheWorstRanksAndKeepsTheMedianOfAll) {
  RankFold fold;
  for (int rank = 0; rank < 101; ++rank) fold.Set(rank, 5, rank);
  RankFold::Result result = fold.Fold();
  EXPECT_EQ(result.median, 50);
  EXPECT_EQ(result.worst.size(), RankFold::kMostNamed);
  EXPECT_EQ(result.worst.begin()->first, 93);
  EXPECT_THAT(result.dropped, IsEmpty());
  for (int rank = 0; rank < 101; ++rank) fold.Set(rank, 6, rank == 0 ? 1000 : rank);
  result = fold.Fold();
  EXPECT_TRUE(result.worst.contains(0));
  EXPECT_THAT(result.dropped, ElementsAre(93));
}

TEST(RankFold, RanksThatHaveEndedCountNoMore) {
  RankFold fold;
  for (int rank = 0; rank < 2; ++rank) fold.Set(rank, 5, 0.5);
  fold.Set(0, 6, 0.5);
  EXPECT_EQ(fold.Fold().worst.size(), 2u) << "rank 1 has not reported this step yet";
  fold.Set(0, 7, 0.5);
  const RankFold::Result result = fold.Fold();
  EXPECT_THAT(result.worst, ElementsAre(Pair(0, 0.5)));
  EXPECT_THAT(result.dropped, ElementsAre(1));
}

TEST(RankFold, AJobThatRepeatsStepsBeginsAnew) {
  RankFold fold;
  for (int rank = 0; rank < 4; ++rank) fold.Set(rank, 9, 0.25);
  fold.Fold();
  fold.Set(0, 4, 0.5);
  const RankFold::Result result = fold.Fold();
  EXPECT_EQ(result.median, 0.5);
  EXPECT_THAT(result.worst, ElementsAre(Pair(0, 0.5)));
  EXPECT_THAT(result.dropped, ElementsAre(1, 2, 3));
}

}  // namespace
}  // namespace troupe
