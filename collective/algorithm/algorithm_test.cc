#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "collective/algorithm/choice.h"
#include "collective/algorithm/steps.h"

namespace troupe {
namespace {

// The steps of all ranks as text, for comparison with hand-checked ones.
std::string Text(Algorithm algorithm, CollectiveOperation operation, int ranks,
                 int peer = kNobody) {
  std::string text;
  for (int rank = 0; rank < ranks; ++rank) {
    text += fmt::format("rank {}\n{}", rank,
                        ToString(MakeSteps(algorithm, operation, rank, ranks, peer)));
  }
  return text;
}

TEST(AlgorithmTest, RingAllReduceOfTwoExchangesHalves) {
  EXPECT_EQ(Text(Algorithm::kRing, CollectiveOperation::kAllReduce, 2),
            "rank 0\n"
            "0: send 1 [1,2) receive 1 [0,1) reduce\n"
            "1: send 1 [0,1) receive 1 [1,2)\n"
            "rank 1\n"
            "0: send 0 [0,1) receive 0 [1,2) reduce\n"
            "1: send 0 [1,2) receive 0 [0,1)\n");
}

TEST(AlgorithmTest, RingAllReduceOfThreeReducesThenGathersAroundTheRing) {
  EXPECT_EQ(Text(Algorithm::kRing, CollectiveOperation::kAllReduce, 3),
            "rank 0\n"
            "0: send 1 [2,3) receive 2 [1,2) reduce\n"
            "1: send 1 [1,2) receive 2 [0,1) reduce\n"
            "2: send 1 [0,1) receive 2 [2,3)\n"
            "3: send 1 [2,3) receive 2 [1,2)\n"
            "rank 1\n"
            "0: send 2 [0,1) receive 0 [2,3) reduce\n"
            "1: send 2 [2,3) receive 0 [1,2) reduce\n"
            "2: send 2 [1,2) receive 0 [0,1)\n"
            "3: send 2 [0,1) receive 0 [2,3)\n"
            "rank 2\n"
            "0: send 0 [1,2) receive 1 [0,1) reduce\n"
            "1: send 0 [0,1) receive 1 [2,3) reduce\n"
            "2: send 0 [2,3) receive 1 [1,2)\n"
            "3: send 0 [1,2) receive 1 [0,1)\n");
}

TEST(AlgorithmTest, RecursiveDoublingOfFiveFoldsTheFifthIntoTheFirst) {
  EXPECT_EQ(Text(Algorithm::kRecursiveDoubling, CollectiveOperation::kAllReduce, 5),
            "rank 0\n"
            "0: receive 4 [0,1) reduce\n"
            "1: send 1 [0,1) receive 1 [0,1) reduce\n"
            "2: send 2 [0,1) receive 2 [0,1) reduce\n"
            "3: send 4 [0,1)\n"
            "rank 1\n"
            "0: send 0 [0,1) receive 0 [0,1) reduce\n"
            "1: send 3 [0,1) receive 3 [0,1) reduce\n"
            "rank 2\n"
            "0: send 3 [0,1) receive 3 [0,1) reduce\n"
            "1: send 0 [0,1) receive 0 [0,1) reduce\n"
            "rank 3\n"
            "0: send 2 [0,1) receive 2 [0,1) reduce\n"
            "1: send 1 [0,1) receive 1 [0,1) reduce\n"
            "rank 4\n"
            "0: send 0 [0,1)\n"
            "1: receive 0 [0,1)\n");
}

TEST(AlgorithmTest, RecursiveDoublingAllGatherOfFourDoublesTheBlocks) {
  EXPECT_EQ(ToString(MakeSteps(Algorithm::kRecursiveDoubling, CollectiveOperation::kAllGather, 2, 4,
                               kNobody)),
            "0: send 3 [2,3) receive 3 [3,4)\n"
            "1: send 0 [2,4) receive 0 [0,2)\n");
}

TEST(AlgorithmTest, TreeBroadcastFromRankTwoOfFive) {
  EXPECT_EQ(Text(Algorithm::kTree, CollectiveOperation::kBroadcast, 5, 2),
            "rank 0\n"
            "0: receive 3 [0,1)\n"
            "rank 1\n"
            "0: receive 2 [0,1)\n"
            "rank 2\n"
            "0: send 3 [0,1)\n"
            "1: send 4 [0,1)\n"
            "2: send 1 [0,1)\n"
            "rank 3\n"
            "0: receive 2 [0,1)\n"
            "1: send 0 [0,1)\n"
            "rank 4\n"
            "0: receive 2 [0,1)\n");
}

TEST(AlgorithmTest, BarrierOfThreeHearsFromAllInTwoSteps) {
  EXPECT_EQ(ToString(MakeSteps(Algorithm::kTree, CollectiveOperation::kBarrier, 0, 3, kNobody)),
            "0: send 1 [0,1) receive 2 [0,1)\n"
            "1: send 2 [0,1) receive 1 [0,1)\n");
}

TEST(AlgorithmTest, PairwiseAllToAllMeetsEveryRankOnce) {
  EXPECT_EQ(
      ToString(MakeSteps(Algorithm::kPairwise, CollectiveOperation::kAllToAll, 1, 3, kNobody)),
      "0: send 2 [2,3) receive 0 [0,1)\n"
      "1: send 0 [0,1) receive 2 [2,3)\n");
}

TEST(AlgorithmTest, PairwiseReduceScatterHasOneRankMakeEachSum) {
  EXPECT_EQ(Text(Algorithm::kPairwise, CollectiveOperation::kReduceScatter, 3),
            "rank 0\n"
            "0: send 1 [1,2) receive 2 [0,1) reduce\n"
            "1: send 2 [2,3) receive 1 [0,1) reduce\n"
            "rank 1\n"
            "0: send 2 [2,3) receive 0 [1,2) reduce\n"
            "1: send 0 [0,1) receive 2 [1,2) reduce\n"
            "rank 2\n"
            "0: send 0 [0,1) receive 1 [2,3) reduce\n"
            "1: send 1 [1,2) receive 0 [2,3) reduce\n");
  EXPECT_EQ(
      ToString(MakeSteps(Algorithm::kPairwise, CollectiveOperation::kAllReduce, 1, 2, kNobody)),
      "0: send 0 [0,1) receive 0 [1,2) reduce\n"
      "1: send 0 [1,2) receive 0 [0,1)\n");
}

TEST(AlgorithmTest, NoPartialSumIsSentInAFormOfItsOwn) {
  for (const size_t bytes : {64, 64 << 20}) {
    EXPECT_EQ(ChooseAlgorithm(CollectiveOperation::kAllReduce, bytes, 4, true),
              Algorithm::kPairwise);
    EXPECT_EQ(ChooseAlgorithm(CollectiveOperation::kReduceScatter, bytes, 4, true),
              Algorithm::kPairwise);
  }
}

TEST(AlgorithmTest, SmallAllReducesDoubleAndLargeOnesRing) {
  EXPECT_EQ(ChooseAlgorithm(CollectiveOperation::kAllReduce, 64, 2), Algorithm::kRecursiveDoubling);
  EXPECT_EQ(ChooseAlgorithm(CollectiveOperation::kAllReduce, 64 << 20, 2), Algorithm::kRing);
  EXPECT_EQ(ChooseAlgorithm(CollectiveOperation::kAllGather, 64, 4), Algorithm::kRecursiveDoubling);
  EXPECT_EQ(ChooseAlgorithm(CollectiveOperation::kAllGather, 64, 3), Algorithm::kRing);
}

TEST(AlgorithmTest, BalancedBlocksDifferByAtMostOneGranuleAndCoverTheData) {
  std::vector<size_t> offsets;
  BalancedOffsets(7, 4, 3, &offsets);
  EXPECT_EQ(offsets, (std::vector<size_t>{0, 12, 20, 28}));
  BalancedOffsets(2, 4, 4, &offsets);
  EXPECT_EQ(offsets, (std::vector<size_t>{0, 4, 8, 8, 8}));
  BalancedOffsets(1001, 4, 2, &offsets);
  EXPECT_EQ(offsets, (std::vector<size_t>{0, 32 * 64, 4004}));
}

}  // namespace
}  // namespace troupe
