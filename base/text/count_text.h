// Texts that state how many things there are. Pure.
#ifndef TROUPE_BASE_TEXT_COUNT_TEXT_H_
#define TROUPE_BASE_TEXT_COUNT_TEXT_H_

#include <fmt/format.h>

#include <concepts>
#include <string>
#include <string_view>

namespace troupe {

// Returns "1 step" or "2 steps". `many`: the words for any number but one where "s" behind `one`
// does not make them, as in "2 recoveries" or "2 workers are".
template <std::integral Count>
std::string CountText(Count count, std::string_view one, std::string_view many = "") {
  if (count == 1) return fmt::format("1 {}", one);
  return many.empty() ? fmt::format("{} {}s", count, one) : fmt::format("{} {}", count, many);
}

}  // namespace troupe

#endif  // TROUPE_BASE_TEXT_COUNT_TEXT_H_
