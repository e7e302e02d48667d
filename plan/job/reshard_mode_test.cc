#include "plan/job/reshard_mode.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(ReshardModeTest, EveryModeIsReadFromItsText) {
  for (const ReshardMode mode :
       {kReshardTrue, kReshardFalse, ReshardRun(1), ReshardRun(2), ReshardRun(4096)}) {
    EXPECT_EQ(ParseReshardMode(mode.ToText()), mode) << mode.ToText();
  }
  EXPECT_EQ(kReshardTrue.ToText(), "true");
  EXPECT_EQ(kReshardFalse.ToText(), "false");
  EXPECT_EQ(ReshardRun(16).ToText(), "16");
}

TEST(ReshardModeTest, AnyOtherTextIsNone) {
  for (const char* const text :
       {"", "True", "0", "-2", "+2", "02", "2.0", " 2", "2x", "maybe", "99999999999"}) {
    EXPECT_EQ(ParseReshardMode(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace troupe
