#include "base/text/scaled.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>

namespace troupe {

std::string Scaled(double value, const char* unit) {
  static constexpr const char* kSuffixes[] = {"", "k", "M", "G", "T", "P", "E"};
  if (std::string_view(unit) == "B" && value > 0) value = std::max(1.0, std::round(value));
  size_t suffix = 0;
  // With a prefix, 999.5 would be shown as 1e+03.
  while (value >= (suffix == 0 ? 1000 : 999.5) && suffix + 1 < std::size(kSuffixes)) {
    value /= 1000;
    ++suffix;
  }
  return suffix == 0 ? fmt::format("{:.6g} {}", value, unit)
                     : fmt::format("{:.3g} {}{}", value, kSuffixes[suffix], unit);
}

std::string Gigabytes(int64_t bytes) {
  return fmt::format("{:.2f} GB", static_cast<double>(bytes) / 1e9);
}

}  // namespace troupe
