// Draws quantities of several kinds as stacked bars, with their numbers as a table. Pure.
#ifndef TROUPE_REPORT_BAR_CHART_H_
#define TROUPE_REPORT_BAR_CHART_H_

#include <string>
#include <vector>

#include "report/markup.h"

namespace troupe {

struct BarPart {
  std::string kind;
  double value = 0;
};

struct Bar {
  std::string label;
  std::vector<BarPart> parts;
};

struct BarChart {
  std::string title;
  const char* unit = "";  // "B" or "s", which prefixes precede
  std::vector<Bar> bars;
  // These kinds have the first colours, whether they occur or not, as in another drawing.
  std::vector<std::string> kinds;
};

// Kinds have their colours in the order in which they first occur, behind those of `chart.kinds`.
// Parts that are not above 0 are left out.
void Draw(const BarChart& chart, Markup* page);

}  // namespace troupe

#endif  // TROUPE_REPORT_BAR_CHART_H_
