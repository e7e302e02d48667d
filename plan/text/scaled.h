// Formats numbers for people. Pure.
#ifndef TROUPE_PLAN_TEXT_SCALED_H_
#define TROUPE_PLAN_TEXT_SCALED_H_

#include <cstdint>
#include <string>

namespace troupe {

// Formats a value with three digits and a decimal prefix: 1234567 "B" is "1.23 MB".
std::string Scaled(double value, const char* unit);

// Formats bytes with two decimals: "1.23 GB".
std::string Gigabytes(int64_t bytes);

}  // namespace troupe

#endif  // TROUPE_PLAN_TEXT_SCALED_H_
