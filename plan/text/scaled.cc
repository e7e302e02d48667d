#include "plan/text/scaled.h"

#include <fmt/format.h>

#include <iterator>

namespace troupe {

std::string Scaled(double value, const char* unit) {
  static constexpr const char* kSuffixes[] = {"", "k", "M", "G", "T", "P", "E"};
  size_t suffix = 0;
  while (value >= 1000 && suffix + 1 < std::size(kSuffixes)) {
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
