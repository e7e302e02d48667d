// Draws what several ranks do over time as rows of blocks, in SVG. Pure.
#ifndef TROUPE_REPORT_TIMELINE_H_
#define TROUPE_REPORT_TIMELINE_H_

#include <string>
#include <vector>

#include "report/markup.h"

namespace troupe {

struct TimelineBlock {
  double begin = 0;
  double end = 0;
  size_t kind = 0;    // index into Timeline::kinds
  std::string label;  // shown where there is room for it
  bool pale = false;  // distinguishes the chunks of one rank
};

struct TimelineRow {
  std::string label;
  std::vector<TimelineBlock> blocks;
};

struct Timeline {
  std::string title;
  std::string note;                // empty: none
  std::vector<std::string> kinds;  // those that occur are in the legend
  std::vector<TimelineRow> rows;
};

// Only the earliest of very many blocks are drawn; the page then states how many are not.
void Draw(const Timeline& timeline, Markup* page);

}  // namespace troupe

#endif  // TROUPE_REPORT_TIMELINE_H_
