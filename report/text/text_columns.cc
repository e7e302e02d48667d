#include "report/text/text_columns.h"

#include <algorithm>

#include "base/text/display_width.h"

namespace troupe {
namespace {

std::string Joined(const std::vector<LinePart>& parts) {
  std::string line;
  for (const LinePart& part : parts) line += (line.empty() ? "" : "  ") + part.text;
  return line;
}

}  // namespace

std::string FittingLine(std::vector<LinePart> parts, size_t columns) {
  std::string line = Joined(parts);
  while (DisplayColumns(line) > columns) {
    const auto [least, most] = std::ranges::minmax_element(parts, {}, &LinePart::importance);
    if (least->importance == most->importance) break;
    parts.erase(least);
    line = Joined(parts);
  }
  return line;
}

}  // namespace troupe
