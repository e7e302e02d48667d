#include "worker/session/core_division.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace troupe::session {
namespace {

using ::testing::ElementsAre;

const std::vector<Core> kTwo = {{0}, {1}};
const std::vector<Core> kFour = {{0}, {1}, {2}, {3}};

struct JobOnHost {
  std::string name;
  int ranks = 1;
  int threads = 1;
  uint64_t begin_ns = 0;
};

std::vector<CoreDemand> Demands(const std::vector<JobOnHost>& jobs, std::vector<int> allowed) {
  std::vector<CoreDemand> demands;
  for (const JobOnHost& job : jobs) {
    for (int rank = 0; rank < job.ranks; ++rank) {
      CoreDemand& demand = demands.emplace_back();
      demand.claim.set_job(job.name);
      demand.claim.set_rank(rank);
      demand.claim.set_threads(job.threads);
      demand.claim.set_begin_ns(job.begin_ns);
      demand.allowed = allowed;
    }
  }
  return demands;
}

// Returns "0-1 | 2 x3": the cores of each demand, with the number of demands that share them if
// more than one.
std::string Text(const std::vector<v1::CoreSet>& sets) {
  std::string text;
  for (const v1::CoreSet& set : sets) {
    if (!text.empty()) text += " | ";
    std::string_view separator;
    for (const int core : set.cores()) {
      text += std::string(separator) + std::to_string(core);
      separator = ",";
    }
    if (set.shared_by() != 1) text += " x" + std::to_string(set.shared_by());
  }
  return text;
}

struct Row {
  std::vector<JobOnHost> jobs;
  std::vector<Core> host;
  std::string sets;
};

TEST(DivideCores, RanksOfAllJobsHaveCoresOfTheirOwnWhereThereAreEnoughAndElseShareThemEvenly) {
  const std::vector<Row> table = {
      {{{"a", 1, 2}}, kTwo, "0,1"},
      {{{"a", 2, 1}}, kTwo, "0 | 1"},
      {{{"a", 2, 2}}, kFour, "0,1 | 2,3"},
      // Two jobs, each of which would fill the host by itself.
      {{{"a", 1, 2, 1}, {"b", 1, 2, 2}}, kTwo, "0 | 1"},
      {{{"a", 2, 2, 1}, {"b", 2, 2, 2}}, kFour, "0 | 1 | 2 | 3"},
      {{{"a", 2, 1, 1}, {"b", 2, 1, 2}}, kFour, "0 | 1 | 2 | 3"},
      // More ranks than cores: about the same number of threads on each core.
      {{{"a", 2, 1, 1}, {"b", 2, 1, 2}}, kTwo, "0 x2 | 1 x2 | 0 x2 | 1 x2"},
      {{{"a", 1, 2, 1}, {"b", 2, 1, 2}}, kTwo, "0 | 1 x2 | 1 x2"},
      {{{"a", 3, 1}}, kTwo, "0 x2 | 1 | 0 x2"},
      // In proportion to threads, with no core left over.
      {{{"a", 1, 4, 1}, {"b", 2, 1, 2}}, kFour, "0,1 | 2 | 3"},
      {{{"a", 1, 3, 1}, {"b", 1, 1, 2}}, kFour, "0,1,2 | 3"},
      {{{"a", 1, 1, 1}, {"b", 1, 1, 2}}, kFour, "0,1 | 2,3"},
  };
  for (const Row& row : table) {
    std::vector<int> allowed;
    for (const Core& core : row.host) allowed.push_back(core[0]);
    EXPECT_EQ(Text(DivideCores(Demands(row.jobs, allowed), row.host)), row.sets);
  }
}

TEST(DivideCores, TheOlderJobComesFirstWhateverTheOrderInWhichDaemonsAreHeard) {
  std::vector<CoreDemand> demands =
      Demands({{"younger", 1, 1, 20}, {"older", 1, 1, 10}}, {0, 1, 2, 3});
  EXPECT_EQ(Text(DivideCores(demands, kFour)), "2,3 | 0,1");
  std::swap(demands[0], demands[1]);
  EXPECT_EQ(Text(DivideCores(demands, kFour)), "0,1 | 2,3");
}

TEST(DivideCores, RanksOfOneJobStayInOrderThoughTheirDaemonsHeardOfItAtDifferentTimes) {
  std::vector<CoreDemand> demands = Demands({{"a", 2, 1, 10}, {"b", 1, 1, 9}}, {0, 1, 2, 3});
  demands[0].claim.set_begin_ns(12);
  demands[1].claim.set_begin_ns(8);
  EXPECT_EQ(Text(DivideCores(demands, kFour)), "0,1 | 2 | 3");
}

TEST(DivideCores, HardwareThreadsOfOneCoreGoToOneRank) {
  const std::vector<Core> host = {{0, 2}, {1, 3}};
  EXPECT_EQ(Text(DivideCores(Demands({{"a", 2, 1}}, {0, 1, 2, 3}), host)), "0,2 | 1,3");
  EXPECT_EQ(Text(DivideCores(Demands({{"a", 2, 1}}, {0, 1, 3}), host)), "0 | 1,3");
}

TEST(DivideCores, DaemonsOfDifferentPartsOfAHostDivideEachItsOwn) {
  std::vector<CoreDemand> demands = Demands({{"a", 1, 2, 1}, {"b", 1, 2, 2}}, {0, 1});
  demands[1].allowed = {2, 3};
  EXPECT_EQ(Text(DivideCores(demands, kFour)), "0,1 | 2,3");
}

TEST(DivideCores, PartsThatOverlapAreDisjointWhereTheCoresSuffice) {
  const auto divided = [](std::vector<std::vector<int>> masks) {
    std::vector<CoreDemand> demands;
    for (const std::vector<int>& mask : masks) {
      CoreDemand& demand = demands.emplace_back(Demands({{"a", 1, 1, 1}}, mask)[0]);
      demand.claim.set_rank(static_cast<int>(demands.size()));
    }
    return Text(DivideCores(demands, kFour));
  };
  EXPECT_EQ(divided({{0, 1}, {1, 2}}), "0 | 1,2");
  EXPECT_EQ(divided({{0, 1, 2, 3}, {0, 1}}), "1,2,3 | 0");
}

TEST(DivideCores, WithoutAKnownHostNobodyIsBound) {
  const std::vector<v1::CoreSet> sets = DivideCores(Demands({{"a", 1, 1}}, {0, 1}), {});
  ASSERT_EQ(sets.size(), 1u);
  EXPECT_THAT(sets[0].cores(), ElementsAre());
  EXPECT_EQ(sets[0].shared_by(), 0);
}

}  // namespace
}  // namespace troupe::session
