// Formats numbers for people. Pure.
#ifndef TROUPE_BASE_TEXT_SCALED_H_
#define TROUPE_BASE_TEXT_SCALED_H_

#include <cstdint>
#include <string>

namespace troupe {

// Formats a value with three digits and a decimal prefix: 1234567 "B" is "1.23 MB". Below 1000 the
// value has up to six digits, but bytes, which may be an average, are rounded to a whole number;
// what is above 0 is at least 1 byte.
std::string Scaled(double value, const char* unit);

// Formats bytes with two decimals: "1.23 GB".
std::string Gigabytes(int64_t bytes);

}  // namespace troupe

#endif  // TROUPE_BASE_TEXT_SCALED_H_
