// Breaks a text for people into lines. Widths are those of DisplayColumns. Pure.
#ifndef TROUPE_BASE_TEXT_WRAPPED_H_
#define TROUPE_BASE_TEXT_WRAPPED_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace troupe {

// The treatment of a word that is longer than a line.
enum class LongWords {
  kWhole,   // it has a line of its own, which is longer
  kBroken,  // it is broken: after the last slash that fits, or else where the line ends
};

// Breaks `text`, which has no newline, at spaces into lines of at most `columns` columns. Lines
// after the first begin with `indent`, which counts. REQUIRES: `text` is UTF-8.
std::string Wrapped(std::string_view text, size_t columns, std::string_view indent = "",
                    LongWords long_words = LongWords::kWhole);

// Returns `prefix` and behind it `text`, which is broken into lines of at most `columns` columns.
// The other lines begin below the beginning of `text`, which has 8 columns at least. Long words are
// broken. REQUIRES: the texts are UTF-8 without newlines.
std::string WrappedBehind(std::string_view prefix, std::string_view text, size_t columns);

}  // namespace troupe

#endif  // TROUPE_BASE_TEXT_WRAPPED_H_
