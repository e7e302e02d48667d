#include "worker/daemon/core_topology.h"

#include <gtest/gtest.h>

#include <map>

#include "worker/rank/affinity.h"

namespace troupe {
namespace {

using Cores = std::vector<std::vector<int>>;

TEST(CoreTopologyTest, ListsOfTheKernelAreRead) {
  EXPECT_EQ(ParseCoreList("0-3,8\n"), (std::vector<int>{0, 1, 2, 3, 8}));
  EXPECT_EQ(ParseCoreList("5"), (std::vector<int>{5}));
  for (const char* const text : {"", "\n", "x", "3-1", "0-", "0;1", "0-99999999"}) {
    EXPECT_EQ(ParseCoreList(text), std::vector<int>{}) << text;
  }
}

TEST(CoreTopologyTest, ThreadsOfOneCoreAreTogetherAndCoresOfOneNodeFollowEachOther) {
  // Two nodes with two cores of two threads each, numbered as firmware often does.
  const std::map<int, std::string> siblings = {{0, "0,4"}, {1, "1,5"}, {2, "2,6"}, {3, "3,7"},
                                               {4, "0,4"}, {5, "1,5"}, {6, "2,6"}, {7, "3,7"}};
  const auto of = [&](int thread) { return siblings.at(thread); };
  const auto node = [](int thread) { return thread % 2; };
  EXPECT_EQ(CoresOfHost({0, 1, 2, 3, 4, 5, 6, 7}, of, node),
            (Cores{{0, 4}, {2, 6}, {1, 5}, {3, 7}}));
  // Thread 4 is offline.
  EXPECT_EQ(CoresOfHost({0, 1, 5}, of, node), (Cores{{0}, {1, 5}}));
}

TEST(CoreTopologyTest, WhereTheKernelReportsNothingEachThreadIsACore) {
  const auto silent = [](int) { return std::string(); };
  EXPECT_EQ(CoresOfHost({0, 1}, silent, [](int) { return 0; }), (Cores{{0}, {1}}));
}

TEST(CoreTopologyTest, ThisHostsCoresHaveTheThreadsOfThisProcess) {
  std::vector<int> threads;
  for (const std::vector<int>& core : ProbeHostCores())
    threads.insert(threads.end(), core.begin(), core.end());
  for (const int thread : AllowedCores())
    EXPECT_EQ(std::count(threads.begin(), threads.end(), thread), 1) << thread;
}

}  // namespace
}  // namespace troupe
