#include "report/timeline.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/legend.h"

namespace troupe {
namespace {

constexpr double kTimelineWidth = 1000, kLabelWidth = 90, kRowHeight = 26, kRowGap = 4;
constexpr double kLetterWidth = 7;  // about that of the font
constexpr size_t kMostBlocks = 4000;

// Returns the time before which at most kMostBlocks blocks begin, and the end of the last of them.
struct Horizon {
  double begins_before = 0;
  double end = 0;
  size_t left_out = 0;
};

Horizon HorizonOf(const Timeline& timeline) {
  std::vector<double> begins;
  Horizon horizon;
  for (const TimelineRow& row : timeline.rows) {
    for (const TimelineBlock& block : row.blocks) {
      begins.push_back(block.begin);
      horizon.end = std::max(horizon.end, block.end);
    }
  }
  horizon.begins_before = horizon.end;
  if (begins.size() <= kMostBlocks) return horizon;
  std::ranges::nth_element(begins, begins.begin() + kMostBlocks);
  horizon.begins_before = horizon.end = begins[kMostBlocks];
  horizon.left_out = begins.size() - kMostBlocks;
  return horizon;
}

bool HasKind(const Timeline& timeline, size_t kind) {
  return std::ranges::any_of(timeline.rows, [&](const TimelineRow& row) {
    return std::ranges::count(row.blocks, kind, &TimelineBlock::kind) > 0;
  });
}

std::vector<LegendItem> ItemsOf(const Timeline& timeline) {
  std::vector<LegendItem> items;
  for (size_t i = 0; i < timeline.kinds.size(); ++i) {
    if (HasKind(timeline, i)) items.push_back({ColourClass(i), timeline.kinds[i]});
  }
  return items;
}

void DrawBlock(const TimelineBlock& block, double y, double scale, Markup* page) {
  const double x = kLabelWidth + block.begin * scale;
  const double width = (block.end - block.begin) * scale;
  page->Open("g", {{"class", block.pale ? "pale" : "full"}});
  page->Open("rect", {{"class", "fill " + ColourClass(block.kind)},
                      {"x", Coordinate(x)},
                      {"y", Coordinate(y)},
                      {"width", Coordinate(width)},
                      {"height", Coordinate(kRowHeight - kRowGap)}});
  page->Element("title", {}, block.label);
  page->Close();
  if (width > kLetterWidth * static_cast<double>(block.label.size())) {
    page->Element("text",
                  {{"class", "block"}, {"x", Coordinate(x + width / 2)}, {"y", Coordinate(y + 15)}},
                  block.label);
  }
  page->Close();
}

}  // namespace

void Draw(const Timeline& timeline, Markup* page) {
  page->Open("figure", {{"class", "full"}});
  page->Element("figcaption", {}, timeline.title);
  const Horizon horizon = HorizonOf(timeline);
  if (horizon.end > 0) {
    const double scale = (kTimelineWidth - kLabelWidth) / horizon.end;
    const double height = kRowHeight * static_cast<double>(timeline.rows.size());
    page->Open("div", {{"class", "wide"}});
    page->Open("svg", {{"class", "timeline"},
                       {"viewBox", fmt::format("0 0 {} {}", kTimelineWidth, height)},
                       {"role", "img"},
                       {"aria-label", timeline.title}});
    for (size_t i = 0; i < timeline.rows.size(); ++i) {
      const double y = kRowHeight * static_cast<double>(i);
      page->Element("text", {{"x", "0"}, {"y", Coordinate(y + 15)}}, timeline.rows[i].label);
      for (const TimelineBlock& block : timeline.rows[i].blocks) {
        if (block.begin < horizon.begins_before) DrawBlock(block, y, scale, page);
      }
    }
    page->Close();
    page->Close();
    DrawLegend(ItemsOf(timeline), page);
  }
  if (!timeline.note.empty()) page->Element("p", {{"class", "note"}}, timeline.note);
  if (horizon.left_out > 0) {
    page->Element("p", {{"class", "note"}},
                  fmt::format("{} later blocks are left out", horizon.left_out));
  }
  page->Close();
}

}  // namespace troupe
