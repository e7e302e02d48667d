#include "collective/ucx/endpoint_lanes.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

std::string LinkText(std::string_view description) { return ToText(LinkOfLanes(description)); }

TEST(EndpointLanes, TheLaneOfEagerMessagesIsTheLink) {
  EXPECT_EQ(LinkText("#\n# UCP endpoint \n#\n#               peer: <no debug data>\n"
                     "#                 lane[0]:  3:sysv/memory.0 md[2]           -> "
                     "md[2]/sysv/sysdev[255] am am_bw#0\n"
                     "#                 lane[1]:  5:cma/memory.0 md[4]            -> "
                     "md[4]/cma/sysdev[255] rma_bw#0\n"),
            "shared memory (sysv)");
  EXPECT_EQ(
      LinkText("#   lane[0]:  1:tcp/eth0.0 md[1]  -> md[1]/tcp/sysdev[255] rma_bw#1 wireup\n"
               "#   lane[1]:  2:tcp/lo.0 md[1]  -> md[1]/tcp/sysdev[255] rma_bw#0 am am_bw#0"),
      "TCP (lo)");
  EXPECT_EQ(LinkText("# lane[0]:  6:rc_mlx5/mlx5_0:1.0 md[5] -> md[5]/ib/sysdev[0] am am_bw#0\n"),
            "RDMA (mlx5_0:1)");
}

TEST(EndpointLanes, WhatIsNotKnownIsNamedAsFarAsPossible) {
  EXPECT_EQ(LinkText(""), "unknown");
  EXPECT_EQ(LinkText("# lane[0]: 3:sysv/memory.0 md[2] -> x am_bw#0\n"), "unknown");
  EXPECT_EQ(LinkText("# lane[0]: 3:pigeon/loft.0 md[2] -> x am\n"), "pigeon");
  EXPECT_EQ(LinkText("# lane[0]: am"), "am");
}

}  // namespace
}  // namespace troupe
