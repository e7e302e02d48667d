#include "worker/rank/network_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

v1::BeginRank Begin() {
  v1::BeginRank begin;
  begin.mutable_start()->set_group_key(std::string(32, 'k'));
  begin.set_hang_seconds(1);
  for (const char* const host : {"a", "b", "a"}) {
    v1::RankPlacement* const placement = begin.mutable_start()->mutable_plan()->add_ranks();
    placement->set_rank(begin.start().plan().ranks_size() - 1);
    placement->set_host(host);
  }
  return begin;
}

TEST(NetworkOptions, AHostIsAnIslandUnlessAnotherIsStated) {
  v1::BeginRank begin = Begin();
  EXPECT_THAT(MakeNetworkOptions(begin, 1)->islands, ElementsAre(0, 1, 0));
  for (v1::RankPlacement& placement : *begin.mutable_start()->mutable_plan()->mutable_ranks())
    placement.set_island("rack");
  EXPECT_THAT(MakeNetworkOptions(begin, 1)->islands, ElementsAre(0, 0, 0));
}

TEST(NetworkOptions, WithoutAHostTheIslandsAreNotKnown) {
  v1::BeginRank begin = Begin();
  begin.mutable_start()->mutable_plan()->mutable_ranks(1)->clear_host();
  EXPECT_THAT(MakeNetworkOptions(begin, 1)->islands, IsEmpty());
}

}  // namespace
}  // namespace troupe
