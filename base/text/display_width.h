// The width of a text on a terminal, and texts that are cut to a width. Pure.
//
// East Asian wide and full-width characters, and emoji, have two columns; combining marks and
// characters that only format have none; all others have one (Unicode 14, East_Asian_Width and
// General_Category). A terminal that draws one of them in another width moves what follows it.
#ifndef TROUPE_BASE_TEXT_DISPLAY_WIDTH_H_
#define TROUPE_BASE_TEXT_DISPLAY_WIDTH_H_

#include <cstddef>
#include <limits>
#include <string>
#include <string_view>

namespace troupe {

// A width without a limit: nothing is cut and no line is broken.
inline constexpr size_t kAnyColumns = std::numeric_limits<size_t>::max();

// Returns the number of columns. A byte that is part of no character counts as one.
size_t DisplayColumns(std::string_view text);

// Returns the longest beginning of whole characters that has at most `columns` columns, with the
// marks that combine with its last character.
std::string_view FirstDisplayColumns(std::string_view text, size_t columns);

// Returns `text`, or its beginning and its end with "…" between them, in at most `columns` columns.
std::string MiddleShortened(std::string_view text, size_t columns);

}  // namespace troupe

#endif  // TROUPE_BASE_TEXT_DISPLAY_WIDTH_H_
