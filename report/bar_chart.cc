#include "report/bar_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "base/text/scaled.h"
#include "report/legend.h"

namespace troupe {
namespace {

constexpr double kBarWidth = 1000, kBarHeight = 26;

double TotalOf(const Bar& bar) {
  double total = 0;
  for (const BarPart& part : bar.parts) total += std::max(part.value, 0.0);
  return total;
}

double ValueOf(const Bar& bar, const std::string& kind) {
  double value = 0;
  for (const BarPart& part : bar.parts) value += part.kind == kind ? part.value : 0;
  return value;
}

struct ColouredKind {
  std::string name;
  std::string colour;
};

// Returns the kinds that occur, in the order of their colours.
std::vector<ColouredKind> KindsOf(const BarChart& chart) {
  std::vector<std::string> all = chart.kinds;
  std::set<std::string> occurring;
  for (const Bar& bar : chart.bars) {
    for (const BarPart& part : bar.parts) {
      if (part.value <= 0) continue;
      occurring.insert(part.kind);
      if (!std::ranges::count(all, part.kind)) all.push_back(part.kind);
    }
  }
  std::vector<ColouredKind> kinds;
  for (size_t i = 0; i < all.size(); ++i) {
    if (occurring.contains(all[i])) kinds.push_back({all[i], ColourClass(i)});
  }
  return kinds;
}

// Formats an amount. Seconds have prefixes below 1 as well.
std::string AmountText(double value, const char* unit) {
  if (std::string_view(unit) != "s") return Scaled(value, unit);
  return value == 0 || value >= 1 ? fmt::format("{:.3g} s", value)
         : value >= 1e-3          ? fmt::format("{:.3g} ms", value * 1e3)
                                  : fmt::format("{:.3g} µs", value * 1e6);
}

void DrawBar(const Bar& bar, const std::vector<ColouredKind>& kinds, double largest,
             const char* unit, Markup* page) {
  page->Element("p", {{"class", "bar"}},
                fmt::format("{}: {}", bar.label, AmountText(TotalOf(bar), unit)));
  page->Open("svg", {{"class", "bar"},
                     {"viewBox", fmt::format("0 0 {} {}", kBarWidth, kBarHeight)},
                     {"preserveAspectRatio", "none"},
                     {"role", "img"},
                     {"aria-label", bar.label}});
  double x = 0;
  for (const ColouredKind& kind : kinds) {
    const double value = ValueOf(bar, kind.name);
    if (value <= 0) continue;
    const double width = value / largest * kBarWidth;
    page->Open("rect", {{"class", "fill " + kind.colour},
                        {"x", Coordinate(x)},
                        {"width", Coordinate(width)},
                        {"height", Coordinate(kBarHeight)}});
    page->Element("title", {}, kind.name + ": " + AmountText(value, unit));
    page->Close();
    x += width;
  }
  page->Close();
}

void DrawNumbers(const BarChart& chart, const std::vector<ColouredKind>& kinds, Markup* page) {
  page->Open("details");
  page->Element("summary", {}, "numbers");
  page->Open("div", {{"class", "wide"}});
  page->Open("table", {{"class", "numbers"}});
  page->Open("tr");
  page->Element("th", {}, "");
  for (const ColouredKind& kind : kinds) page->Element("th", {}, kind.name);
  page->Close();
  for (const Bar& bar : chart.bars) {
    page->Open("tr");
    page->Element("th", {}, bar.label);
    for (const ColouredKind& kind : kinds) {
      page->Element("td", {}, AmountText(ValueOf(bar, kind.name), chart.unit));
    }
    page->Close();
  }
  page->Close();
  page->Close();
  page->Close();
}

}  // namespace

void Draw(const BarChart& chart, Markup* page) {
  double largest = 0;
  for (const Bar& bar : chart.bars) largest = std::max(largest, TotalOf(bar));
  page->Open("figure", {});
  page->Element("figcaption", {}, chart.title);
  if (largest > 0) {
    const std::vector<ColouredKind> kinds = KindsOf(chart);
    for (const Bar& bar : chart.bars) DrawBar(bar, kinds, largest, chart.unit, page);
    std::vector<LegendItem> items;
    for (const ColouredKind& kind : kinds) items.push_back({kind.colour, kind.name});
    DrawLegend(items, page);
    DrawNumbers(chart, kinds, page);
  } else {
    page->Element("p", {{"class", "note"}}, "not measured");
  }
  page->Close();
}

}  // namespace troupe
