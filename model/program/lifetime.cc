#include "model/program/lifetime.h"

#include <algorithm>

namespace troupe::model {
namespace {

// The lifetimes placed at one offset. They share it, so no two of them overlap in time.
struct Level {
  int64_t offset = 0;
  std::vector<const Lifetime*> placed;  // by time

  // The end in space of those that overlap `lifetime` in time; -1: none does.
  int64_t TopOfOverlapping(const Lifetime& lifetime) const {
    auto other = std::partition_point(placed.begin(), placed.end(), [&](const Lifetime* earlier) {
      return earlier->end < lifetime.begin;
    });
    int64_t top = -1;
    for (; other != placed.end() && (*other)->begin <= lifetime.end; ++other)
      top = std::max(top, offset + (*other)->bytes);
    return top;
  }

  void Add(const Lifetime* lifetime) {
    placed.insert(std::partition_point(
                      placed.begin(), placed.end(),
                      [&](const Lifetime* earlier) { return earlier->end < lifetime->begin; }),
                  lifetime);
  }
};

bool HaveAnOperationInCommon(const std::vector<Lifetime*>& lifetimes) {
  int last_begin = 0, first_end = INT32_MAX;
  for (const Lifetime* lifetime : lifetimes) {
    last_begin = std::max(last_begin, lifetime->begin);
    first_end = std::min(first_end, lifetime->end);
  }
  return last_begin <= first_end;
}

int64_t LowestFreeOffset(const std::vector<Level>& levels, const Lifetime& lifetime) {
  int64_t offset = 0;
  for (const Level& level : levels) {
    const int64_t top = level.TopOfOverlapping(lifetime);
    if (top < 0) continue;
    if (offset + lifetime.bytes <= level.offset) break;
    offset = std::max(offset, top);
  }
  return offset;
}

}  // namespace

int64_t Pack(std::vector<Lifetime*> lifetimes) {
  std::stable_sort(lifetimes.begin(), lifetimes.end(),
                   [](const Lifetime* a, const Lifetime* b) { return a->bytes > b->bytes; });
  const bool stacked = HaveAnOperationInCommon(lifetimes);
  std::vector<Level> levels;  // by offset
  int64_t total = 0;
  for (Lifetime* lifetime : lifetimes) {
    if (lifetime->bytes == 0) {
      lifetime->offset = 0;
      continue;
    }
    lifetime->offset = stacked ? total : LowestFreeOffset(levels, *lifetime);
    total = std::max(total, lifetime->offset + lifetime->bytes);
    if (stacked) continue;
    auto level =
        std::lower_bound(levels.begin(), levels.end(), lifetime->offset,
                         [](const Level& lower, int64_t offset) { return lower.offset < offset; });
    if (level == levels.end() || level->offset != lifetime->offset)
      level = levels.insert(level, {lifetime->offset, {}});
    level->Add(lifetime);
  }
  return total;
}

}  // namespace troupe::model
