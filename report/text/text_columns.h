// Lines that fit into the width of a terminal. Pure.
#ifndef TROUPE_REPORT_TEXT_TEXT_COLUMNS_H_
#define TROUPE_REPORT_TEXT_TEXT_COLUMNS_H_

#include <cstddef>
#include <string>
#include <vector>

namespace troupe {

// A part of a line that is shown only where it fits.
struct LinePart {
  std::string text;
  int importance = 0;
};

// Returns the parts with two spaces between them. While that is wider than `columns`, the least
// important part is left out; those of the greatest importance stay. REQUIRES: the texts are UTF-8.
std::string FittingLine(std::vector<LinePart> parts, size_t columns);

}  // namespace troupe

#endif  // TROUPE_REPORT_TEXT_TEXT_COLUMNS_H_
