#include "base/text/display_width.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(DisplayWidth, WideCharactersHaveTwoColumnsAndMarksNone) {
  EXPECT_EQ(DisplayColumns(""), 0u);
  EXPECT_EQ(DisplayColumns("jobs/a"), 6u);
  EXPECT_EQ(DisplayColumns("größe ×"), 7u);
  EXPECT_EQ(DisplayColumns("模型"), 4u);
  EXPECT_EQ(DisplayColumns("モデル"), 6u);
  EXPECT_EQ(DisplayColumns("모델"), 4u);
  EXPECT_EQ(DisplayColumns("Ｆｕｌｌ"), 8u);
  EXPECT_EQ(DisplayColumns("ﾓﾃﾞﾙ"), 4u) << "half-width";
  EXPECT_EQ(DisplayColumns("\U0001F680"), 2u);
  EXPECT_EQ(DisplayColumns("e\u0301"), 1u) << "a letter and its accent";
  EXPECT_EQ(DisplayColumns("\u1112\u1161\u11ab"), 2u) << "a syllable of Hangul in three parts";
  EXPECT_EQ(DisplayColumns("a\u200bb"), 2u);
  EXPECT_EQ(DisplayColumns("…─│█"), 4u) << "of ambiguous width";
  EXPECT_EQ(DisplayColumns("a\xff\xe4"), 3u);
}

TEST(DisplayWidth, ThePartsOfACharacterStayTogether) {
  EXPECT_EQ(FirstDisplayColumns("abc", 2), "ab");
  EXPECT_EQ(FirstDisplayColumns("abc", 9), "abc");
  EXPECT_EQ(FirstDisplayColumns("模型", 3), "模");
  EXPECT_EQ(FirstDisplayColumns("模型", 1), "");
  EXPECT_EQ(FirstDisplayColumns("ae\u0301b", 2), "ae\u0301");
  EXPECT_EQ(FirstDisplayColumns("größe", 3), "grö");
}

TEST(DisplayWidth, ATextThatIsTooWideLosesItsMiddle) {
  EXPECT_EQ(MiddleShortened("jobs/tiny", 9), "jobs/tiny");
  EXPECT_EQ(MiddleShortened("jobs/tiny", kAnyColumns), "jobs/tiny");
  EXPECT_EQ(MiddleShortened("jobs/a-long-name-1", 9), "jobs…me-1");
  EXPECT_EQ(MiddleShortened("jobs/a-long-name-1", 8), "jobs…e-1");
  EXPECT_EQ(MiddleShortened("jobs/tiny", 1), "…");
  EXPECT_EQ(MiddleShortened("jobs/tiny", 0), "");
  EXPECT_EQ(MiddleShortened("模型模型模型", 6), "模…型");
  EXPECT_EQ(MiddleShortened("abcdefe\u0301", 4), "ab…e\u0301");
  for (size_t columns = 0; columns < 14; ++columns)
    EXPECT_LE(DisplayColumns(MiddleShortened("模a型e\u0301模型模", columns)), columns);
}

}  // namespace
}  // namespace troupe
