#include "report/text/text_columns.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

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
