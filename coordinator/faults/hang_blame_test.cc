#include "coordinator/faults/hang_blame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace troupe {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct GroupOfRank {
  std::string name;
  std::vector<int> ranks;
  uint64_t entered = 0;
  uint64_t blocked_in = 0;
  double waited = 0;
};

std::optional<v1::RankFlight> Flight(const std::vector<GroupOfRank>& groups) {
  v1::RankFlight flight;
  flight.set_activity("step 7: forward of chunk 0, microbatch 1");
  for (const GroupOfRank& group : groups) {
    v1::GroupFlight& entry = *flight.add_groups();
    entry.set_group(group.name);
    entry.set_axis(group.name.substr(0, group.name.find('/')));
    entry.mutable_ranks()->Assign(group.ranks.begin(), group.ranks.end());
    entry.set_entered(group.entered);
    entry.set_blocked_in(group.blocked_in);
    entry.set_operation("all_reduce");
    entry.set_purpose("grad_reduce");
    entry.set_waited_seconds(group.waited);
  }
  return flight;
}

TEST(BlameForHang, TheRankThatDoesNotAnswerIsNamedAndNotThoseThatWait) {
  const HangBlame blame = BlameForHang({Flight({{"data/0", {0, 1, 2}, 12, 12, 2.5}}), std::nullopt,
                                        Flight({{"data/0", {0, 1, 2}, 12, 12, 2.25}})});
  EXPECT_EQ(blame.rank, 1);
  EXPECT_THAT(
      blame.message,
      AllOf(HasSubstr("rank 1 did not enter operation 12 (all_reduce, grad_reduce"),
            HasSubstr("of data/0 on axis data, in which ranks 0, 2 have been blocked for 2.5 s"),
            HasSubstr("does not answer")));
}

TEST(BlameForHang, ARankThatComputesWhileOthersWaitIsNamedWithWhatItDoes) {
  const HangBlame blame =
      BlameForHang({Flight({{"data/0", {0, 1}, 12, 12, 2.5}}), Flight({{"data/0", {0, 1}, 11}})});
  EXPECT_EQ(blame.rank, 1);
  EXPECT_THAT(blame.message, HasSubstr("it was at step 7: forward of chunk 0, microbatch 1"));
}

// Rank 0 waits for 1 in its tensor group, 1 for 2 in the pipeline, 2 for 3 in its own tensor group.
TEST(BlameForHang, AChainOfWaitsIsFollowedToItsEnd) {
  const HangBlame blame =
      BlameForHang({Flight({{"tensor/0", {0, 1}, 5, 5, 4}}),
                    Flight({{"tensor/0", {0, 1}, 4}, {"pipe/1>2", {1, 2}, 9, 9, 4.5}}),
                    Flight({{"pipe/1>2", {1, 2}, 8}, {"tensor/1", {2, 3}, 6, 6, 5}}),
                    Flight({{"tensor/1", {2, 3}, 5}})});
  EXPECT_EQ(blame.rank, 3);
  EXPECT_THAT(blame.message, HasSubstr("operation 6"));
}

TEST(BlameForHang, OfSeveralTheOneThatMostWaitForIsNamed) {
  const HangBlame blame = BlameForHang({Flight({{"data/0", {0, 1}, 3, 3, 1}}), std::nullopt,
                                        Flight({{"data/1", {2, 3, 4}, 3, 3, 1}}), std::nullopt,
                                        Flight({{"data/1", {2, 3, 4}, 3, 3, 1}})});
  EXPECT_EQ(blame.rank, 3);
}

TEST(BlameForHang, ARankThatHasEnteredAndWaitsInARingIsNotBlamedForBeingAwaited) {
  // All but rank 2 have entered. In the ring, 1 waits for 0, which waits for 2.
  const HangBlame blame = BlameForHang({Flight({{"data/0", {0, 1, 2}, 12, 12, 2}}),
                                        Flight({{"data/0", {0, 1, 2}, 12, 12, 2}}),
                                        Flight({{"data/0", {0, 1, 2}, 11}})});
  EXPECT_EQ(blame.rank, 2);
}

TEST(BlameForHang, NobodyIsNamedWhereAllHaveEnteredOrWaitForEachOther) {
  const HangBlame network = BlameForHang(
      {Flight({{"data/0", {0, 1}, 12, 12, 2}}), Flight({{"data/0", {0, 1}, 12, 12, 2}})});
  EXPECT_EQ(network.rank, -1);
  EXPECT_THAT(network.message, HasSubstr("does not arrive"));
  const HangBlame cycle = BlameForHang({Flight({{"a/0", {0, 1}, 2, 2, 2}, {"b/0", {0, 1}, 0}}),
                                        Flight({{"a/0", {0, 1}, 1}, {"b/0", {0, 1}, 1, 1, 2}})});
  EXPECT_EQ(cycle.rank, -1);
  EXPECT_THAT(cycle.message, HasSubstr("wait for each other: rank 0 in operation 2"));
}

TEST(BlameForHang, WithoutCollectivesTheOneThatDoesNotAnswerOrTheOnlyRankIsNamed) {
  EXPECT_EQ(BlameForHang({std::nullopt}).rank, 0);
  EXPECT_EQ(BlameForHang({Flight({}), std::nullopt}).rank, 1);
  for (const HangBlame& several : {BlameForHang({std::nullopt, std::nullopt}),
                                   BlameForHang({std::nullopt, std::nullopt, Flight({})})}) {
    EXPECT_EQ(several.rank, -1) << "they are equally suspect";
    EXPECT_THAT(several.suspects, ElementsAre(0, 1));
    EXPECT_THAT(several.message, AllOf(HasSubstr("ranks 0, 1 do not answer"),
                                       HasSubstr("so the one that stopped first is unknown")));
  }
  EXPECT_EQ(BlameForHang({Flight({})}).rank, 0);
  const HangBlame computing = BlameForHang({Flight({}), Flight({})});
  EXPECT_EQ(computing.rank, -1);
  EXPECT_THAT(computing.message, HasSubstr("rank 1 at step 7: forward"));
}

// In a mesh of data × tensor groups, the stopped rank is named, whichever it is and wherever the
// others' operations block on it.
TEST(BlameForHang, InAMeshOfGroupsWhoeverStopsIsNamed) {
  constexpr int kRanks = 8;
  for (int stopped = 0; stopped < kRanks; ++stopped) {
    for (const bool answers : {false, true}) {
      std::vector<std::optional<v1::RankFlight>> flights(kRanks);
      const auto tensor_of = [](int rank) { return rank / 2; };
      const auto data_of = [](int rank) { return rank % 2; };
      for (int rank = 0; rank < kRanks; ++rank) {
        std::vector<int> data;
        for (int i = 0; i < kRanks / 2; ++i) data.push_back(2 * i + data_of(rank));
        const std::vector<int> tensor = {2 * tensor_of(rank), 2 * tensor_of(rank) + 1};
        GroupOfRank t{"tensor/" + std::to_string(tensor_of(rank)), tensor, 10, 0, 0};
        GroupOfRank d{"data/" + std::to_string(data_of(rank)), data, 4, 0, 0};
        if (rank == stopped) {
          t.entered = 9;  // in the middle of a layer
        } else if (tensor_of(rank) == tensor_of(stopped)) {
          t.blocked_in = 10;  // its tensor neighbour
        } else {
          t.entered = 20;
          d.entered = 5;
          d.blocked_in = 5;  // reduces gradients
        }
        t.waited = d.waited = 3;
        if (rank != stopped || answers) flights[static_cast<size_t>(rank)] = Flight({t, d});
      }
      EXPECT_EQ(BlameForHang(flights).rank, stopped) << "answers: " << answers;
    }
  }
}

}  // namespace
}  // namespace troupe
