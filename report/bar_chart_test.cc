#include "report/bar_chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string DrawnBars(const std::vector<std::string>& kinds) {
  BarChart chart;
  chart.title = "Phases";
  chart.unit = "s";
  chart.kinds = kinds;
  chart.bars = {{"rank 0", {{"update", 1}, {"forward", 2}, {"idle", 0}}}};
  Markup page;
  Draw(chart, &page);
  return page.text();
}

TEST(BarChartTest, KindsHaveTheirColoursInTheOrderOfTheirOccurrence) {
  const std::string html = DrawnBars({});
  EXPECT_THAT(html, HasSubstr("<span class=\"swatch c0\"></span>\nupdate</span>"));
  EXPECT_THAT(html, HasSubstr("<span class=\"swatch c1\"></span>\nforward</span>"));
  EXPECT_THAT(html, Not(HasSubstr("idle")));
}

TEST(BarChartTest, KindsOfAnotherDrawingHaveTheColoursThatTheyHaveThere) {
  const std::string html = DrawnBars({"forward", "backward"});
  EXPECT_THAT(html, HasSubstr("<span class=\"swatch c0\"></span>\nforward</span>"));
  EXPECT_THAT(html, HasSubstr("<span class=\"swatch c2\"></span>\nupdate</span>"));
  EXPECT_THAT(html, Not(HasSubstr("backward"))) << "it does not occur";
}

}  // namespace
}  // namespace troupe
