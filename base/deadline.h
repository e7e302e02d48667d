// Deadlines that may be absent, which means never.
#ifndef TROUPE_BASE_DEADLINE_H_
#define TROUPE_BASE_DEADLINE_H_

#include <algorithm>
#include <optional>

#include "base/clock.h"

namespace troupe {

// A deadline that has always come.
inline constexpr MonotonicTime kAtOnce = MonotonicTime::min();

inline std::optional<MonotonicTime> EarlierOf(std::optional<MonotonicTime> a,
                                              std::optional<MonotonicTime> b) {
  if (!a || !b) return a ? a : b;
  return std::min(*a, *b);
}

}  // namespace troupe

#endif  // TROUPE_BASE_DEADLINE_H_
