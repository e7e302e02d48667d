// Numbers for people. Pure.
#ifndef TROUPE_PLAN_SCALED_H_
#define TROUPE_PLAN_SCALED_H_

#include <string>

namespace troupe {

// 1234567 "B" as "1.23 MB": three digits and a decimal prefix.
std::string Scaled(double value, const char* unit);

}  // namespace troupe

#endif  // TROUPE_PLAN_SCALED_H_
