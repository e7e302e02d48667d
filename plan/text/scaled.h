// Formats numbers for people. Pure.
#ifndef TROUPE_PLAN_TEXT_SCALED_H_
#define TROUPE_PLAN_TEXT_SCALED_H_

#include <string>

namespace troupe {

// Formats a value with three digits and a decimal prefix: 1234567 "B" is "1.23 MB".
std::string Scaled(double value, const char* unit);

}  // namespace troupe

#endif  // TROUPE_PLAN_TEXT_SCALED_H_
