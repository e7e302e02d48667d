#include "report/text/duration_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <utility>

namespace troupe {
namespace {

constexpr int64_t kMinute = 60;
constexpr int64_t kHour = 60 * kMinute;
constexpr int64_t kDay = 24 * kHour;

}  // namespace

std::string DurationText(double seconds) {
  const int64_t whole = std::llround(std::clamp(seconds, 0.0, 1e12));
  if (whole < kMinute) return fmt::format("{} s", whole);
  if (whole < kHour) return fmt::format("{}:{:02}", whole / kMinute, whole % kMinute);
  return fmt::format("{}:{:02}:{:02}", whole / kHour, whole / kMinute % 60, whole % kMinute);
}

std::string AgeText(int64_t seconds) {
  if (seconds < kMinute) return fmt::format("{} s", std::max<int64_t>(seconds, 0));
  if (seconds < kHour) return fmt::format("{} min", seconds / kMinute);
  if (seconds < 2 * kDay) return fmt::format("{} h", seconds / kHour);
  return fmt::format("{} d", seconds / kDay);
}

std::string AgeText(int64_t then_ns, int64_t now_ns) {
  return then_ns == 0 ? "" : AgeText((now_ns - then_ns) / 1'000'000'000);
}

StatusOr<int64_t> ParseDuration(const char* flag, const std::string& text) {
  constexpr int64_t kMostNumber = int64_t{1} << 32;
  constexpr std::pair<char, int64_t> kUnits[] = {
      {'d', kDay}, {'h', kHour}, {'m', kMinute}, {'s', 1}};
  const char* at = text.data();
  const char* const last = text.data() + text.size();
  const auto* unit = std::begin(kUnits);  // the largest that may follow
  int64_t total = 0;
  while (at != last) {
    int64_t number = 0;
    const auto [end, error] = std::from_chars(at, last, number);
    if (*at == '-' || error != std::errc() || number > kMostNumber || end == last) break;
    const char letter = *end;
    unit = std::find_if(unit, std::end(kUnits),
                        [letter](const auto& one) { return one.first == letter; });
    if (unit == std::end(kUnits)) break;
    total += number * (unit++)->second;
    at = end + 1;
  }
  if (at == last && total > 0) return total;
  return InvalidArgument("{} is \"{}\", must be a time such as 30d or 1h30m (d, h, m, s)", flag,
                         text);
}

}  // namespace troupe
