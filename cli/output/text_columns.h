// The width of texts on a terminal, where each character counts as one column. Pure.
#ifndef TROUPE_CLI_OUTPUT_TEXT_COLUMNS_H_
#define TROUPE_CLI_OUTPUT_TEXT_COLUMNS_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

// Returns the number of characters. REQUIRES: `text` is UTF-8.
size_t ColumnsOf(std::string_view text);

// Returns the first `columns` characters, whole ones. REQUIRES: `text` is UTF-8.
std::string_view FirstColumns(std::string_view text, size_t columns);

// A part of a line that is shown only where it fits.
struct LinePart {
  std::string text;
  int importance = 0;
};

// Returns the parts with two spaces between them. While that is wider than `columns`, the least
// important part is left out; those of the greatest importance stay. REQUIRES: the texts are UTF-8.
std::string FittingLine(std::vector<LinePart> parts, size_t columns);

}  // namespace troupe

#endif  // TROUPE_CLI_OUTPUT_TEXT_COLUMNS_H_
