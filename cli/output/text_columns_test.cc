#include "cli/output/text_columns.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(TextColumnsTest, CharactersCountNotBytes) {
  EXPECT_EQ(ColumnsOf(""), 0u);
  EXPECT_EQ(ColumnsOf("pipe 2 × tensor 2 …"), 19u);
}

TEST(TextColumnsTest, ATextIsCutBetweenCharacters) {
  EXPECT_EQ(FirstColumns("a…b", 0), "");
  EXPECT_EQ(FirstColumns("a…b", 1), "a");
  EXPECT_EQ(FirstColumns("a…b", 2), "a…");
  EXPECT_EQ(FirstColumns("a…b", 3), "a…b");
  EXPECT_EQ(FirstColumns("a…b", 9), "a…b");
}

TEST(TextColumnsTest, TheLeastImportantPartsOfALineAreLeftOutUntilItFits) {
  const std::vector<LinePart> parts = {
      {"step 3", 3}, {"loss 2", 2}, {"MFU 1%", 1}, {"9 s left", 3}};
  EXPECT_EQ(FittingLine(parts, 32), "step 3  loss 2  MFU 1%  9 s left");
  EXPECT_EQ(FittingLine(parts, 31), "step 3  loss 2  9 s left");
  EXPECT_EQ(FittingLine(parts, 23), "step 3  9 s left");
  EXPECT_EQ(FittingLine(parts, 2), "step 3  9 s left") << "the most important ones stay";
}

}  // namespace
}  // namespace troupe
