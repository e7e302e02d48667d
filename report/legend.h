// The legend of a drawing: its colours, each with a word. Pure.
#ifndef TROUPE_REPORT_LEGEND_H_
#define TROUPE_REPORT_LEGEND_H_

#include <cstddef>
#include <string>
#include <vector>

#include "report/markup.h"

namespace troupe {

struct LegendItem {
  std::string colour;  // classes of the style sheet, such as "c0"
  std::string text;
};

// A colour and its word stay together on one line; a word that is wider than the page is cut.
void DrawLegend(const std::vector<LegendItem>& items, Markup* page);

// Returns the class of a colour for the thing of this number. Beyond nine, colours repeat.
std::string ColourClass(size_t number);

}  // namespace troupe

#endif  // TROUPE_REPORT_LEGEND_H_
