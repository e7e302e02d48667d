#include "report/line_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "report/legend.h"

namespace troupe {
namespace {

constexpr double kChartWidth = 420, kChartHeight = 210;
constexpr double kChartLeft = 68, kChartRight = 22, kChartTop = 10, kChartBottom = 30;
constexpr size_t kMostPoints = 600;
constexpr size_t kMostMarks = 400;
// Beyond it, differences of two numbers may not be finite.
constexpr double kLargest = 1e300;

bool IsDrawn(double value) { return std::isfinite(value) && std::abs(value) < kLargest; }

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void Add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool empty() const { return low > high; }
  // Makes room around a single value.
  void Widen() {
    if (low < high) return;
    const double room = low == 0 ? 1 : 0.05 * std::abs(low);
    low -= room;
    high += room;
  }
};

struct Frame {
  Range x, y;

  std::string X(double value) const {
    return Coordinate(kChartLeft + (value - x.low) / (x.high - x.low) *
                                       (kChartWidth - kChartLeft - kChartRight));
  }
  std::string Y(double value) const {
    return Coordinate(kChartHeight - kChartBottom -
                      (value - y.low) / (y.high - y.low) *
                          (kChartHeight - kChartTop - kChartBottom));
  }
};

// Formats seconds as "1:02:03" or "2:03".
std::string ClockText(double seconds) {
  const int64_t whole = std::llround(seconds);
  if (whole < 3600) return fmt::format("{}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

// Formats a value at the axis with four digits: "0.25", "20k".
std::string AxisText(double value) {
  constexpr std::pair<double, const char*> kPrefixes[] = {{1e9, "G"}, {1e6, "M"}, {1e3, "k"}};
  if (std::abs(value) < 1e4 || std::abs(value) >= 1e13) return Figure(value);
  for (const auto& [factor, prefix] : kPrefixes) {
    if (std::abs(value) >= factor) return Figure(value / factor) + prefix;
  }
  return Figure(value);
}

Frame FrameOf(const LineChart& chart) {
  Frame frame;
  for (const ChartSeries& series : chart.series) {
    for (const ChartPoint& point : series.points) {
      if (!IsDrawn(point.y)) continue;
      frame.x.Add(point.x);
      frame.y.Add(point.y);
    }
  }
  frame.x.Widen();
  frame.y.Widen();
  return frame;
}

void DrawAxes(const LineChart& chart, const Frame& frame, Markup* page) {
  for (const double value : RoundNumbers(frame.y.low, frame.y.high, 4)) {
    const std::string y = frame.Y(value);
    page->Empty("line", {{"class", "grid"},
                         {"x1", Coordinate(kChartLeft)},
                         {"x2", Coordinate(kChartWidth - kChartRight)},
                         {"y1", y},
                         {"y2", y}});
    page->Element("text",
                  {{"class", "left"}, {"x", Coordinate(kChartLeft - 6)}, {"y", y}, {"dy", "4"}},
                  AxisText(value));
  }
  for (const double value : RoundNumbers(frame.x.low, frame.x.high, 5)) {
    const bool is_time = chart.axis == LineChart::Axis::kSeconds;
    if (!is_time && value != std::floor(value)) continue;  // there is no half of a step
    page->Element("text",
                  {{"class", "below"}, {"x", frame.X(value)}, {"y", Coordinate(kChartHeight - 12)}},
                  is_time ? ClockText(value) : fmt::format("{:.0f}", value));
  }
}

// Draws the newest marks, so that a job of very many checkpoints keeps a page of readable size.
void DrawMarks(const LineChart& chart, const Frame& frame, Markup* page) {
  const size_t first = chart.marks.size() - std::min(chart.marks.size(), kMostMarks);
  for (size_t i = first; i < chart.marks.size(); ++i) {
    const ChartMark& mark = chart.marks[i];
    if (mark.x < frame.x.low || mark.x > frame.x.high) continue;
    const bool is_recovery = mark.kind == ChartMark::Kind::kRecovery;
    const double bottom = kChartHeight - kChartBottom;
    page->Open("line", {{"class", is_recovery ? "recovery" : "checkpoint"},
                        {"x1", frame.X(mark.x)},
                        {"x2", frame.X(mark.x)},
                        {"y1", Coordinate(is_recovery ? kChartTop : bottom - 8)},
                        {"y2", Coordinate(bottom)}});
    page->Element("title", {}, mark.label);
    page->Close();
  }
}

// Returns the class of a series and of its dots.
std::string SeriesClass(const char* kind, size_t number) {
  return fmt::format("{} s{}", kind, number);
}

void DrawDot(const LineChart& chart, const ChartPoint& point, size_t number, const Frame& frame,
             Markup* page) {
  const std::string x = chart.axis == LineChart::Axis::kStep ? fmt::format("step {:.0f}", point.x)
                                                             : ClockText(point.x);
  page->Open("circle", {{"class", SeriesClass("dot", number)},
                        {"cx", frame.X(point.x)},
                        {"cy", frame.Y(point.y)},
                        {"r", "3"}});
  page->Element("title", {}, fmt::format("{}: {}", x, Figure(point.y)));
  page->Close();
}

void DrawSeries(const LineChart& chart, size_t number, const Frame& frame, Markup* page) {
  const ChartSeries& series = chart.series[number];
  const std::vector<ChartPoint> points = Thinned(series.points, kMostPoints);
  std::string path;
  bool follows = false;
  for (const ChartPoint& point : points) {
    if (!IsDrawn(point.y)) {
      follows = false;
      continue;
    }
    path += fmt::format("{}{} {}", follows ? "L" : "M", frame.X(point.x), frame.Y(point.y));
    // A line of no length is a dot, because lines have round ends.
    if (!follows) path += "h0";
    follows = true;
  }
  const std::string line = SeriesClass("series", number);
  page->Empty("path", {{"class", series.is_sparse ? line + " sparse" : line}, {"d", path}});
  if (!series.is_sparse) return;
  for (const ChartPoint& point : points) {
    if (IsDrawn(point.y)) DrawDot(chart, point, number, frame, page);
  }
}

void DrawSeriesLegend(const LineChart& chart, Markup* page) {
  if (chart.series.size() < 2) return;
  std::vector<LegendItem> items;
  for (size_t i = 0; i < chart.series.size(); ++i) {
    const ChartSeries& series = chart.series[i];
    items.push_back({fmt::format("s{}{}", i, series.is_sparse ? " round" : ""), series.name});
  }
  DrawLegend(items, page);
}

}  // namespace

std::vector<double> RoundNumbers(double low, double high, int count) {
  const double rough = (high - low) / count;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  const double step = power * (rough < 1.5 * power   ? 1
                               : rough < 3.5 * power ? 2
                               : rough < 7.5 * power ? 5
                                                     : 10);
  std::vector<double> numbers;
  // Counts, because a step that is small next to `low` would not advance a sum.
  const double first = std::ceil(low / step);
  for (int i = 0; i <= 2 * count && (first + i) * step <= high; ++i) {
    numbers.push_back((first + i) * step);
  }
  return numbers;
}

std::vector<ChartPoint> Thinned(const std::vector<ChartPoint>& points, size_t limit) {
  if (points.size() <= limit) return points;
  const size_t runs = limit / 3;
  std::vector<ChartPoint> thinned;
  for (size_t run = 0; run < runs; ++run) {
    const size_t begin = run * points.size() / runs, end = (run + 1) * points.size() / runs;
    size_t low = end, high = end, gap = end;
    for (size_t i = begin; i < end; ++i) {
      if (!IsDrawn(points[i].y)) {
        gap = i;
        continue;
      }
      if (low == end || points[i].y < points[low].y) low = i;
      if (high == end || points[i].y > points[high].y) high = i;
    }
    std::vector<size_t> kept = {low, high, gap};
    std::ranges::sort(kept);
    kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
    for (const size_t index : kept) {
      if (index < end) thinned.push_back(points[index]);
    }
  }
  return thinned;
}

void Draw(const LineChart& chart, Markup* page) {
  page->Open("figure", {});
  page->Element("figcaption", {}, chart.title);
  size_t drawn = 0, absent = 0, gaps = 0;
  for (const ChartSeries& series : chart.series) {
    for (const ChartPoint& point : series.points)
      ++(IsDrawn(point.y) ? drawn : point.is_absent ? absent : gaps);
  }
  if (drawn > 0) {
    const Frame frame = FrameOf(chart);
    page->Open("svg", {{"class", "chart"},
                       {"viewBox", fmt::format("0 0 {} {}", kChartWidth, kChartHeight)},
                       {"role", "img"},
                       {"aria-label", chart.title}});
    DrawAxes(chart, frame, page);
    DrawMarks(chart, frame, page);
    for (size_t i = 0; i < chart.series.size(); ++i) DrawSeries(chart, i, frame, page);
    page->Close();
    DrawSeriesLegend(chart, page);
  } else if (absent + gaps == 0) {
    page->Element("p", {{"class", "note"}}, "not measured");
  }
  if (absent > 0) {
    page->Element(
        "p", {{"class", "note"}},
        fmt::format("{} {} no {}", absent, absent == 1 ? "step has" : "steps have", chart.value));
  }
  if (gaps > 0) {
    page->Element("p", {{"class", "note"}},
                  fmt::format("{} {} not finite", gaps, gaps == 1 ? "value is" : "values are"));
  }
  page->Close();
}

}  // namespace troupe
