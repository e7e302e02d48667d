#include "cli/output/duration_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>
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
  int64_t number = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, number);
  const std::string_view unit(end, static_cast<size_t>(last - end));
  constexpr std::pair<std::string_view, int64_t> kUnits[] = {
      {"s", 1}, {"m", kMinute}, {"h", kHour}, {"d", kDay}};
  for (const auto& [name, seconds] : kUnits) {
    if (error == std::errc() && unit == name && number > 0 && number <= kMostNumber)
      return number * seconds;
  }
  return InvalidArgument("{} is \"{}\", must be a time such as 30d (s, m, h or d)", flag, text);
}

}  // namespace troupe
