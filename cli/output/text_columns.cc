#include "cli/output/text_columns.h"

#include <algorithm>

namespace troupe {
namespace {

bool ContinuesCharacter(char byte) { return (static_cast<unsigned char>(byte) & 0xC0u) == 0x80u; }

std::string Joined(const std::vector<LinePart>& parts) {
  std::string line;
  for (const LinePart& part : parts) line += (line.empty() ? "" : "  ") + part.text;
  return line;
}

}  // namespace

size_t ColumnsOf(std::string_view text) {
  return text.size() - static_cast<size_t>(std::ranges::count_if(text, ContinuesCharacter));
}

std::string_view FirstColumns(std::string_view text, size_t columns) {
  size_t end = 0;
  for (; end < text.size(); ++end) {
    if (ContinuesCharacter(text[end])) continue;
    if (columns-- == 0) break;
  }
  return text.substr(0, end);
}

std::string FittingLine(std::vector<LinePart> parts, size_t columns) {
  std::string line = Joined(parts);
  while (ColumnsOf(line) > columns) {
    const auto [least, most] = std::ranges::minmax_element(parts, {}, &LinePart::importance);
    if (least->importance == most->importance) break;
    parts.erase(least);
    line = Joined(parts);
  }
  return line;
}

}  // namespace troupe
