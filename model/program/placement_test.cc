#include "model/program/placement.h"

#include <gtest/gtest.h>

namespace troupe::model {
namespace {

TEST(BalancedRange, CoversTheExtentWithSizesThatDifferByAtMostOneLargerFirst) {
  for (int64_t extent : {0, 1, 7, 259, 50304}) {
    for (int parts : {1, 2, 3, 4, 7, 64}) {
      int64_t end = 0, last = extent;
      for (int index = 0; index < parts; ++index) {
        const Range range = BalancedRange(extent, parts, index);
        EXPECT_EQ(range.begin, end);
        EXPECT_LE(range.size(), last);
        EXPECT_GE(range.size(), extent / parts);
        EXPECT_LE(range.size(), extent / parts + 1);
        end = range.end;
        last = range.size();
      }
      EXPECT_EQ(end, extent);
    }
  }
}

TEST(Placement, PrintsTheAxesThatAreNotReplicated) {
  Placement placement;
  EXPECT_EQ(ToText(placement), "R");
  placement[Axis::kDataReplicate] = Shard(0);
  placement[Axis::kTensor] = Shard(1, ShardHow::kSegments);
  EXPECT_EQ(ToText(placement), "data_replicate:S(0) tensor:S(1,segments)");
  placement[Axis::kTensor] = PartialSum();
  EXPECT_EQ(ToText(placement), "data_replicate:S(0) tensor:P(sum)");
}

TEST(Placement, OfAGradientExchangesCopiedAndPartial) {
  Placement placement;
  placement[Axis::kDataReplicate] = Shard(0);
  placement[Axis::kTensor] = Copied();
  const Placement gradient = GradientPlacement(placement);
  EXPECT_EQ(ToText(gradient), "data_replicate:S(0) tensor:P(sum)");
  EXPECT_EQ(GradientPlacement(gradient), placement);
}

}  // namespace
}  // namespace troupe::model
