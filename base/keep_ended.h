// Which jobs stay in a coordinator's catalog once they have ended.
#ifndef TROUPE_BASE_KEEP_ENDED_H_
#define TROUPE_BASE_KEEP_ENDED_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/status.h"

namespace troupe {

// Which ended jobs stay; the others are removed without their checkpoints. If neither is set, all
// stay.
struct KeepEnded {
  std::optional<int64_t> count;             // only the `count` newest stay
  std::optional<std::chrono::seconds> age;  // only those that ended within this time stay
};

// Parses "1000" (a count), "36h" (an age in s, m, h or d) or "all". INVALID_ARGUMENT naming `flag`
// for other text.
StatusOr<KeepEnded> ParseKeepEnded(std::string_view flag, std::string_view text);

}  // namespace troupe

#endif  // TROUPE_BASE_KEEP_ENDED_H_
