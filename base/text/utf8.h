// Well-formed UTF-8 (Unicode 16, table 3-7).
#ifndef TROUPE_BASE_TEXT_UTF8_H_
#define TROUPE_BASE_TEXT_UTF8_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace troupe {

// Returns the bytes of the well-formed character at the start of `text`, 1 to 4. If there is none,
// returns minus the bytes of the longest partial character at the start, at least one: the part
// that a decoder replaces by one U+FFFD (Unicode, "substitution of maximal subparts"; also Python's
// errors="replace"). REQUIRES: text is not empty.
int Utf8Character(std::string_view text);

// Returns the number of a well-formed character, such as 0xE9. REQUIRES: `character` is one.
uint32_t CodePoint(std::string_view character);

// Returns the bytes before the first byte that is not part of a well-formed character, or
// text.size() if there is none.
size_t WellFormedPrefix(std::string_view text);

// Replaces every ill-formed part of `text` by U+FFFD and returns the number of replacements. Copies
// nothing if there is none.
int64_t ReplaceIllFormed(std::string& text);

}  // namespace troupe

#endif  // TROUPE_BASE_TEXT_UTF8_H_
