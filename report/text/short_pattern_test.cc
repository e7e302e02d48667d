#include "report/text/short_pattern.h"

#include <gtest/gtest.h>

#include "model/blocks/pattern.h"

namespace troupe {
namespace {

TEST(ShortPattern, RepeatedLettersAreWrittenOnce) {
  EXPECT_EQ(ShortPattern("ADADADAD"), "(AD)x4");
  EXPECT_EQ(ShortPattern("DADADADADA"), "(DA)x5");
  EXPECT_EQ(ShortPattern("MMMMMMMM"), "Mx8");
  EXPECT_EQ(ShortPattern("ADADADADAE"), "(AD)x4AE");
  EXPECT_EQ(ShortPattern("EADADADAD"), "E(AD)x4");
}

TEST(ShortPattern, WhatWouldBeNoShorterStaysAsItIs) {
  EXPECT_EQ(ShortPattern("ADAD"), "ADAD");
  EXPECT_EQ(ShortPattern("A"), "A");
  EXPECT_EQ(ShortPattern(""), "");
}

TEST(ShortPattern, ItExpandsToTheBlocks) {
  for (const char* pattern :
       {"(AD)x32", "((AE)x2AD)x9", "Dx6A(ED)x7", "ADx5(AE)x3", "(AAAAD)x11"}) {
    const auto blocks = model::ExpandPattern(pattern);
    ASSERT_TRUE(blocks.ok()) << blocks.status();
    const auto again = model::ExpandPattern(ShortPattern(*blocks));
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(*again, *blocks) << pattern;
    EXPECT_LT(ShortPattern(*blocks).size(), blocks->size());
  }
}

}  // namespace
}  // namespace troupe
