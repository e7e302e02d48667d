#include "cli/output/duration_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace troupe {

std::string DurationText(double seconds) {
  const int64_t whole = static_cast<int64_t>(std::clamp(seconds, 0.0, 1e12) + 0.5);
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

}  // namespace troupe
