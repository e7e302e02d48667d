// Draws figures over steps or over time as lines, in SVG. Pure.
#ifndef TROUPE_REPORT_LINE_CHART_H_
#define TROUPE_REPORT_LINE_CHART_H_

#include <string>
#include <vector>

#include "report/markup.h"

namespace troupe {

struct ChartPoint {
  double x = 0;
  double y = 0;            // if it is not finite, the line has a gap
  bool is_absent = false;  // y is not finite because the step has no such value
};

struct ChartSeries {
  std::string name;
  std::vector<ChartPoint> points;  // in the order of x
  // Measured now and then: each point is a dot, and a thin line joins them.
  bool is_sparse = false;
};

struct ChartMark {
  enum class Kind { kCheckpoint, kRecovery };
  Kind kind = Kind::kCheckpoint;
  double x = 0;
  std::string label;
};

struct LineChart {
  enum class Axis { kStep, kSeconds };
  std::string title;
  std::string value = "value";  // named in the note about absent points, such as "loss"
  Axis axis = Axis::kStep;
  std::vector<ChartSeries> series;
  std::vector<ChartMark> marks;
};

// Long series are thinned so that every extreme remains. A chart states how many values are absent
// and how many others are not finite, or that it has none.
void Draw(const LineChart& chart, Markup* page);

// Returns at most `limit` points: of each run of neighbours the lowest, the highest, and one that
// is not finite. REQUIRES: limit is at least 6.
std::vector<ChartPoint> Thinned(const std::vector<ChartPoint>& points, size_t limit);

// Returns round numbers from `low` to `high`, about `count`. REQUIRES: low < high.
std::vector<double> RoundNumbers(double low, double high, int count);

}  // namespace troupe

#endif  // TROUPE_REPORT_LINE_CHART_H_
