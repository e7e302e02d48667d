// Well-formed UTF-8 (Unicode 16, table 3-7).
#ifndef TROUPE_DATA_UTF8_H_
#define TROUPE_DATA_UTF8_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace troupe {

// Bytes of the well-formed character at the start of `text`, 1 to 4; where there is none, minus the
// bytes of the longest part of one that begins there, at least one: what a decoder replaces by one
// U+FFFD (Unicode, "substitution of maximal subparts"; also Python's errors="replace"). REQUIRES:
// text is not empty.
int Utf8Character(std::string_view text);

// Bytes before the first that belong to no well-formed character; text.size() if there is none.
size_t WellFormedPrefix(std::string_view text);

// Replaces every ill-formed part of `text` by U+FFFD; how many there were. Nothing is copied where
// there is none.
int64_t ReplaceIllFormed(std::string& text);

}  // namespace troupe

#endif  // TROUPE_DATA_UTF8_H_
