#include "base/keep_ended.h"

#include <charconv>
#include <utility>

namespace troupe {

StatusOr<KeepEnded> ParseKeepEnded(std::string_view flag, std::string_view text) {
  if (text == "all") return KeepEnded{};
  int64_t number = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, number);
  const std::string_view unit(end, static_cast<size_t>(last - end));
  constexpr int64_t kMost = int64_t{1} << 32;
  // 100 years. Times are counted in 64 bits of nanoseconds, which end after 292 years.
  constexpr int64_t kMostSeconds = int64_t{100} * 365 * 86400;
  if (error == std::errc() && number >= 0 && number <= kMost) {
    if (unit.empty()) return KeepEnded{.count = number};
    constexpr std::pair<std::string_view, int64_t> kUnits[] = {
        {"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86400}};
    for (const auto& [name, seconds] : kUnits) {
      if (unit != name) continue;
      if (number > kMostSeconds / seconds) {
        return InvalidArgument("{} is \"{}\", above the limit of {} seconds (100 years)", flag,
                               text, kMostSeconds);
      }
      return KeepEnded{.age = std::chrono::seconds(number * seconds)};
    }
  }
  return InvalidArgument(
      "{} is \"{}\", must be a number of jobs, a time such as 36h (s, m, h or d), or all", flag,
      text);
}

}  // namespace troupe
