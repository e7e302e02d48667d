// Durations for people, and from them.
#ifndef TROUPE_REPORT_TEXT_DURATION_TEXT_H_
#define TROUPE_REPORT_TEXT_DURATION_TEXT_H_

#include <cstdint>
#include <string>

#include "base/status.h"

namespace troupe {

// Returns "1:02:03", "2:03" or "3 s".
std::string DurationText(double seconds);

// Returns how long ago something was, rounded down: "3 s", "12 min", "30 h" or "4 d".
std::string AgeText(int64_t seconds);

// Returns the age, at `now_ns`, of something of the time `then_ns`, both in nanoseconds since the
// Unix epoch; empty if `then_ns` is 0, because the time is not known.
std::string AgeText(int64_t then_ns, int64_t now_ns);

// Returns the seconds of a text such as "90s", "30d" or "1h30m", larger units first.
// INVALID_ARGUMENT, with `flag` and `text`, for any other, and for no time at all.
StatusOr<int64_t> ParseDuration(const char* flag, const std::string& text);

}  // namespace troupe

#endif  // TROUPE_REPORT_TEXT_DURATION_TEXT_H_
