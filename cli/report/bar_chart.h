// Draws quantities of several kinds as stacked bars, with their numbers as a table. Pure.
#ifndef TROUPE_CLI_REPORT_BAR_CHART_H_
#define TROUPE_CLI_REPORT_BAR_CHART_H_

#include <string>
#include <vector>

#include "cli/report/markup.h"

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
  const char* unit;  // "B" or "s", which prefixes precede
  std::vector<Bar> bars;
};

// Kinds have their colours in the order in which they first occur. Parts that are not above 0 are
// left out.
void Draw(const BarChart& chart, Markup* page);

}  // namespace troupe

#endif  // TROUPE_CLI_REPORT_BAR_CHART_H_
