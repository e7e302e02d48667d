#include "report/text/short_pattern.h"

#include <fmt/format.h>

#include <algorithm>

namespace troupe {
namespace {

constexpr size_t kMostLettersOfUnit = 16;

std::string Repeated(std::string_view unit, size_t times) {
  if (times == 1) return std::string(unit);
  return unit.size() == 1 ? fmt::format("{}x{}", unit, times) : fmt::format("({})x{}", unit, times);
}

size_t TimesAtBegin(std::string_view blocks, std::string_view unit) {
  size_t times = 0;
  while (blocks.starts_with(unit)) {
    blocks.remove_prefix(unit.size());
    ++times;
  }
  return times;
}

}  // namespace

std::string ShortPattern(std::string_view blocks) {
  std::string text;
  while (!blocks.empty()) {
    std::string_view best = blocks.substr(0, 1);
    size_t best_times = 1;
    for (size_t size = 1; size <= std::min(kMostLettersOfUnit, blocks.size()); ++size) {
      const std::string_view unit = blocks.substr(0, size);
      const size_t times = TimesAtBegin(blocks, unit);
      const size_t letters = size * times;
      if (times > 1 && Repeated(unit, times).size() < letters &&
          letters > best.size() * best_times) {
        best = unit;
        best_times = times;
      }
    }
    text += Repeated(best, best_times);
    blocks.remove_prefix(best.size() * best_times);
  }
  return text;
}

}  // namespace troupe
