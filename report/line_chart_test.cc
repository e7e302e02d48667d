#include "report/line_chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace troupe {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::string Drawn(const std::vector<ChartPoint>& points) {
  LineChart chart;
  chart.title = "Loss";
  chart.series = {{"loss", points}};
  Markup page;
  Draw(chart, &page);
  return page.text();
}

TEST(LineChartTest, RoundNumbersAreMultiplesOfOneTwoOrFive) {
  EXPECT_THAT(RoundNumbers(0, 10, 5), ElementsAre(0, 2, 4, 6, 8, 10));
  EXPECT_THAT(RoundNumbers(0.11, 0.29, 4),
              ElementsAre(DoubleNear(0.15, 1e-9), DoubleNear(0.2, 1e-9), DoubleNear(0.25, 1e-9)));
  EXPECT_THAT(RoundNumbers(-100, 100, 4), ElementsAre(-100, -50, 0, 50, 100));
  // The step is below the precision of the numbers.
  EXPECT_LE(RoundNumbers(1e17, 1e17 + 32, 4).size(), 9u);
}

TEST(LineChartTest, ThinningKeepsExtremesAndGaps) {
  std::vector<ChartPoint> points;
  for (int i = 0; i < 10000; ++i) points.push_back({static_cast<double>(i), std::sin(i * 0.01)});
  points[5000].y = 7;
  points[6000].y = -7;
  points[7000].y = kNan;
  const std::vector<ChartPoint> thinned = Thinned(points, 300);
  EXPECT_LE(thinned.size(), 300u);
  EXPECT_TRUE(std::ranges::is_sorted(thinned, {}, &ChartPoint::x));
  EXPECT_TRUE(std::ranges::any_of(thinned, [](const ChartPoint& p) { return p.y == 7; }));
  EXPECT_TRUE(std::ranges::any_of(thinned, [](const ChartPoint& p) { return p.y == -7; }));
  EXPECT_TRUE(std::ranges::any_of(thinned, [](const ChartPoint& p) { return std::isnan(p.y); }));
}

TEST(LineChartTest, ALineHasAGapWhereAValueIsNotFinite) {
  const std::string svg = Drawn({{1, 0}, {2, 1}, {3, kNan}, {4, 1}});
  EXPECT_THAT(svg, HasSubstr("d=\"M68 180h0L178 10M398 10h0\""));
  EXPECT_THAT(svg, HasSubstr("1 value is not finite"));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
}

TEST(LineChartTest, AnAbsentValueIsAGapAndNoValueThatIsNotFinite) {
  const std::string svg = Drawn({{1, 0}, {2, 1}, {3, kNan, true}, {4, 1}});
  EXPECT_THAT(svg, HasSubstr("d=\"M68 180h0L178 10M398 10h0\""));
  EXPECT_THAT(svg, HasSubstr("1 step has no value"));
  EXPECT_THAT(svg, Not(HasSubstr("not finite")));
  const std::string both = Drawn({{1, kNan, true}, {2, kNan}, {3, kNan, true}});
  EXPECT_THAT(both, HasSubstr("2 steps have no value"));
  EXPECT_THAT(both, HasSubstr("1 value is not finite"));
  EXPECT_THAT(Drawn({{1, kNan, true}}), Not(HasSubstr("not measured")));
}

TEST(LineChartTest, ExtremeValuesAreDrawnInsideTheFrame) {
  const double largest = std::numeric_limits<double>::max();
  const std::string svg = Drawn({{1, largest}, {2, -largest}, {3, 1e299}, {4, -1e299}});
  EXPECT_THAT(svg, HasSubstr("2 values are not finite"));
  for (const char* word : {"nan", "inf"}) EXPECT_THAT(svg, Not(HasSubstr(word)));
  EXPECT_THAT(Drawn({{5, 3}}), HasSubstr("d=\"M233 95h0\"")) << "one point, in the middle";
}

TEST(LineChartTest, PointsThatAreMeasuredNowAndThenAreDotsOnAThinLine) {
  LineChart chart;
  chart.series = {{"training", {{1, 1}, {9, 1}}},
                  {"validation", {{1, 0}, {5, kNan}, {9, 2}}, true}};
  Markup page;
  Draw(chart, &page);
  EXPECT_THAT(page.text(),
              HasSubstr("<path class=\"series s1 sparse\" d=\"M68 180h0M398 10h0\"/>"));
  EXPECT_THAT(page.text(), HasSubstr("<circle class=\"dot s1\" cx=\"398\" cy=\"10\" r=\"3\">"
                                     "<title>step 9: 2</title>"));
  EXPECT_THAT(page.text(), Not(HasSubstr("step 5")));
  EXPECT_THAT(page.text(), Not(HasSubstr("dot s0")));
}

TEST(LineChartTest, LargeNumbersAtTheAxisHavePrefixes) {
  const std::string svg = Drawn({{1, 0}, {2, 40000}});
  EXPECT_THAT(svg, HasSubstr(">20k</text>"));
  EXPECT_THAT(Drawn({{1, -2.5e6}, {2, 0}}), HasSubstr(">-2M</text>"));
  EXPECT_THAT(Drawn({{1, 0}, {2, 4000}}), HasSubstr(">2000</text>"));
}

TEST(LineChartTest, WithoutAFiniteValueThereIsNoDrawing) {
  EXPECT_THAT(Drawn({}), HasSubstr("not measured"));
  EXPECT_THAT(Drawn({{1, kNan}}), Not(HasSubstr("<svg")));
}

}  // namespace
}  // namespace troupe
