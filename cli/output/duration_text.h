// Durations for people.
#ifndef TROUPE_CLI_OUTPUT_DURATION_TEXT_H_
#define TROUPE_CLI_OUTPUT_DURATION_TEXT_H_

#include <string>

namespace troupe {

// Returns "1:02:03", "2:03" or "3 s".
std::string DurationText(double seconds);

}  // namespace troupe

#endif  // TROUPE_CLI_OUTPUT_DURATION_TEXT_H_
