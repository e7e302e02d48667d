#include "worker/devices/xid_catalog.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(XidCatalog, RulesRiseAndDoNotOverlap) {
  uint64_t before = 0;
  for (const XidRule& rule : AllXidRules()) {
    EXPECT_GT(rule.first, before) << rule.meaning;
    EXPECT_GE(rule.last, rule.first) << rule.meaning;
    EXPECT_STRNE(rule.meaning, "");
    before = rule.last;
  }
}

TEST(XidCatalog, FollowsTheImmediateActionOfTheDriversCatalog) {
  struct Case {
    uint64_t xid;
    Health health;
  };
  const Case cases[] = {
      // RESTART_APP, and 43, after which the process ends by itself.
      {8, Health::kReplaceRank},
      {13, Health::kReplaceRank},
      {31, Health::kReplaceRank},
      {32, Health::kReplaceRank},
      {40, Health::kReplaceRank},
      {43, Health::kReplaceRank},
      {69, Health::kReplaceRank},
      {94, Health::kReplaceRank},
      {137, Health::kReplaceRank},
      // RESET_GPU, RESTART_BM and similar actions.
      {46, Health::kCondemned},
      {48, Health::kCondemned},
      {62, Health::kCondemned},
      {64, Health::kCondemned},
      {74, Health::kCondemned},
      {79, Health::kCondemned},
      {95, Health::kCondemned},
      {109, Health::kCondemned},
      {119, Health::kCondemned},
      {120, Health::kCondemned},
      {136, Health::kCondemned},
      {140, Health::kCondemned},
      {143, Health::kCondemned},
      {149, Health::kCondemned},
      {158, Health::kCondemned},
      // IGNORE: Xids about hardware, then others.
      {63, Health::kDegraded},
      {92, Health::kDegraded},
      {121, Health::kDegraded},
      {154, Health::kDegraded},
      {14, Health::kHealthy},
      {45, Health::kHealthy},
      {106, Health::kHealthy},
  };
  for (const Case& test : cases) {
    EXPECT_EQ(FindXidRule(test.xid).health, test.health) << DescribeXid(test.xid);
  }
}

TEST(XidCatalog, AnUnknownXidCostsTheProcess) {
  for (const uint64_t xid : {uint64_t{1}, uint64_t{12}, uint64_t{500}, uint64_t{999}}) {
    EXPECT_EQ(FindXidRule(xid).health, Health::kReplaceRank) << xid;
  }
  EXPECT_EQ(DescribeXid(999), "Xid 999 (unknown error)");
}

TEST(XidCatalog, NamesTheXidAndItsMeaning) {
  EXPECT_EQ(DescribeXid(79), "Xid 79 (GPU has fallen off the bus)");
  EXPECT_EQ(DescribeXid(133), "Xid 133 (copy engine exception)");
}

}  // namespace
}  // namespace troupe
