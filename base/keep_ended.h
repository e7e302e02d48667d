// The rule for which jobs stay in a coordinator's catalog once they have ended.
#ifndef TROUPE_BASE_KEEP_ENDED_H_
#define TROUPE_BASE_KEEP_ENDED_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/status.h"

namespace troupe {

// Limits of the ended jobs in the catalog; others are removed, except for their checkpoints. With
// neither field all stay.
struct KeepEnded {
  std::optional<int64_t> count;             // the newest `count`
  std::optional<std::chrono::seconds> age;  // those that ended within `age`
};

// "1000": the newest 1000; "36h" (s, m, h or d): those that ended within that time; "all".
// INVALID_ARGUMENT naming `flag` for other text.
StatusOr<KeepEnded> ParseKeepEnded(std::string_view flag, std::string_view text);

}  // namespace troupe

#endif  // TROUPE_BASE_KEEP_ENDED_H_
