// The form that a text for people has where it is printed.
#ifndef TROUPE_CLI_OUTPUT_TEXT_STYLE_H_
#define TROUPE_CLI_OUTPUT_TEXT_STYLE_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/text/display_width.h"

namespace troupe {

struct TextStyle {
  bool colours = false;
  // Lines are broken, and cells of tables shortened, to this width. kAnyColumns: everything is
  // printed whole, as scripts read it.
  size_t columns = kAnyColumns;
  // Paths below this directory are relative to it. Empty: all paths are whole.
  std::string directory;
};

// Returns the number of columns that `text`, a value of the variable COLUMNS, states; nothing if it
// is no number from 1 to 10000. `text` may be null. Pure.
std::optional<size_t> ColumnsIn(const char* text);

// Returns the width of the terminal `descriptor`: that in COLUMNS, or that of its window, or 80.
size_t TerminalColumns(int descriptor);

// Returns the working directory; empty if it cannot be found.
std::string WorkingDirectoryOrNone();

// Returns `path` relative to the working directory if it is below it (RelativePath), else `path`.
std::string PathFromHere(std::string_view path);

// Returns the style for texts on `descriptor`. Only a terminal has a width, paths relative to the
// working directory and, if it is capable (colour.h), colours.
TextStyle TextStyleOf(int descriptor);

// Returns the same style, with paths relative to the working directory in a pipe too.
TextStyle TextStyleFromHere(int descriptor);

// Returns `text` as PrintableLine does, in lines of at most style.columns columns, each with a
// newline. Lines after the first are indented, and long words are broken. Pure.
std::string WrappedLine(std::string_view text, const TextStyle& style);

}  // namespace troupe

#endif  // TROUPE_CLI_OUTPUT_TEXT_STYLE_H_
