// Decides what a text that other people chose may hold (a path, a name, a reason), and shows one
// that holds more: a terminal obeys control characters, and a log has one record in a line. Pure.
//
// Control characters are those of C0 and C1 and DEL, the line separators U+2028 and U+2029, which
// some readers of logs end lines at, and the controls that reorder a line, U+202A to U+202E and
// U+2066 to U+2069. Bytes that are not UTF-8 are never shown as they are: a terminal with another
// encoding obeys some.
#ifndef TROUPE_BASE_TEXT_PRINTABLE_H_
#define TROUPE_BASE_TEXT_PRINTABLE_H_

#include <string>
#include <string_view>

namespace troupe {

// Returns why `text` is no path and no name, as "is not UTF-8: its byte 9 is \xe9" or "has the
// control character U+001B at its byte 4"; empty if it may be one. Messages cannot have a text that
// is not UTF-8.
std::string TextFault(std::string_view text);

// Returns `text` with its control characters but tabs as \n, \r or \uNNNN, and with bytes that are
// not UTF-8 as \xNN. JSON without the latter stays the same JSON.
std::string PrintableLine(std::string_view text);

// The same for a text of several lines: newlines stay too.
std::string PrintableLines(std::string_view text);

}  // namespace troupe

#endif  // TROUPE_BASE_TEXT_PRINTABLE_H_
