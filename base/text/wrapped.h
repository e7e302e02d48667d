// Breaks a text for people into lines. Pure.
#ifndef TROUPE_BASE_TEXT_WRAPPED_H_
#define TROUPE_BASE_TEXT_WRAPPED_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace troupe {

// Breaks `text`, which has no newline, at spaces into lines of at most `columns` characters. A word
// that is longer has a line of its own. Lines after the first begin with `indent`, which counts.
// REQUIRES: `text` is UTF-8.
std::string Wrapped(std::string_view text, size_t columns, std::string_view indent = "");

}  // namespace troupe

#endif  // TROUPE_BASE_TEXT_WRAPPED_H_
