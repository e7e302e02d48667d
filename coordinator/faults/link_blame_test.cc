#include "coordinator/faults/link_blame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Ranks 0 and 1 on host a, 2 on host b, 3 on host c, each on a worker of its own.
v1::Plan FourRanks() {
  v1::Plan plan;
  for (const char* host : {"a", "a", "b", "c"}) {
    v1::RankPlacement& placement = *plan.add_ranks();
    placement.set_rank(plan.ranks_size() - 1);
    placement.set_worker(fmt::format("worker-{}", plan.ranks_size() - 1));
    placement.set_host(host);
  }
  return plan;
}

TEST(LinkBlame, TheOnlyEndThatFailedLinksHaveInCommonIsSuspected) {
  EXPECT_THAT(BlameForLinks(FourRanks(), 0, {2, 3}).suspects, ElementsAre("worker-0"));
}

TEST(LinkBlame, OneFailedLinkImplicatesBothEnds) {
  const LinkBlame blame = BlameForLinks(FourRanks(), 3, {2});
  EXPECT_THAT(blame.suspects, ElementsAre("worker-2", "worker-3"));
  EXPECT_EQ(blame.message, "its link to rank 2 on worker-2 failed");
  EXPECT_THAT(BlameForLinks(FourRanks(), 2, {0, 1}).suspects,
              ElementsAre("worker-0", "worker-1", "worker-2"));
}

TEST(LinkBlame, ALinkInsideAHostAndNumbersOfNoRankAreNoEvidence) {
  const LinkBlame inside = BlameForLinks(FourRanks(), 0, {1});
  EXPECT_THAT(inside.suspects, IsEmpty());
  EXPECT_EQ(inside.message, "its link to rank 1 on worker-1 failed");
  EXPECT_EQ(BlameForLinks(FourRanks(), 0, {-1, 4}).message, "");
  EXPECT_THAT(BlameForLinks(FourRanks(), 0, {}).suspects, IsEmpty());
}

}  // namespace
}  // namespace troupe
