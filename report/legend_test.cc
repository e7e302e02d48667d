#include "report/legend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/page.h"

namespace troupe {
namespace {

using ::testing::ContainsRegex;

TEST(LegendTest, AColourAndItsWordAreOneElementThatIsNeverDivided) {
  Markup page;
  DrawLegend({{"c0", "forward"}, {"c1 round", "a <b>"}}, &page);
  EXPECT_EQ(page.text(),
            "<p class=\"legend\">"
            "<span class=\"item\" title=\"forward\"><span class=\"swatch c0\"></span>\n"
            "forward</span>\n"
            "<span class=\"item\" title=\"a &lt;b&gt;\"><span class=\"swatch c1 round\"></span>\n"
            "a &lt;b&gt;</span>\n</p>\n");
  EXPECT_THAT(PageStyle(), ContainsRegex("\\.item \\{[^}]*white-space: nowrap"));
}

TEST(LegendTest, ColoursRepeatBeyondNine) {
  EXPECT_EQ(ColourClass(8), "c8");
  EXPECT_EQ(ColourClass(9), "c0");
}

}  // namespace
}  // namespace troupe
