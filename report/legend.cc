#include "report/legend.h"

#include <fmt/format.h>

namespace troupe {

void DrawLegend(const std::vector<LegendItem>& items, Markup* page) {
  page->Open("p", {{"class", "legend"}});
  for (const LegendItem& item : items) {
    page->Open("span", {{"class", "item"}, {"title", item.text}});
    page->Element("span", {{"class", "swatch " + item.colour}}, "");
    page->Text(item.text);
    page->Close();
  }
  page->Close();
}

std::string ColourClass(size_t number) {
  constexpr size_t kMostColours = 9;
  return fmt::format("c{}", number % kMostColours);
}

}  // namespace troupe
