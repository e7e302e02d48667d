#include "worker/rank/rank_links.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const Link kShared = {LinkKind::kSharedMemory, "sysv"};
const Link kTcp = {LinkKind::kTcp, "eth0"};
const Link kRdma = {LinkKind::kRdma, "mlx5_0:1"};

// Ranks 0 and 1 are on one host, 2 is on another.
v1::Plan TwoHosts() {
  v1::Plan plan;
  for (const char* const host : {"a", "a", "b"}) plan.add_ranks()->set_host(host);
  return plan;
}

TEST(RankLinks, EachLinkIsNamedOnce) {
  EXPECT_THAT(LinkTexts({{1, kShared}, {2, kTcp}, {3, kShared}}),
              ElementsAre("TCP (eth0)", "shared memory (sysv)"));
  EXPECT_THAT(LinkTexts({}), IsEmpty());
}

TEST(RankLinks, WithinAHostAnythingButSharedMemoryIsAFallback) {
  EXPECT_THAT(LinkFallbacks({{1, kShared}}, TwoHosts(), 0, false), IsEmpty());
  EXPECT_THAT(LinkFallbacks({{1, kTcp}}, TwoHosts(), 0, false),
              ElementsAre("transport to rank 1: TCP (eth0), not shared memory, within a host"));
}

TEST(RankLinks, BetweenHostsTcpIsAFallbackWhereThereIsRdma) {
  EXPECT_THAT(LinkFallbacks({{2, kTcp}}, TwoHosts(), 0, false), IsEmpty());
  EXPECT_THAT(LinkFallbacks({{2, kRdma}}, TwoHosts(), 0, true), IsEmpty());
  EXPECT_THAT(LinkFallbacks({{2, kTcp}}, TwoHosts(), 0, true),
              ElementsAre("transport to rank 2: TCP (eth0), not RDMA, between hosts"));
}

}  // namespace
}  // namespace troupe
