// Which jobs stay in a coordinator's catalog once they have ended.
#ifndef TROUPE_BASE_KEEP_ENDED_H_
#define TROUPE_BASE_KEEP_ENDED_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/status.h"

namespace troupe {

// Others go, but for their checkpoints. Neither: all stay.
struct KeepEnded {
  std::optional<int64_t> count;             // the newest so many
  std::optional<std::chrono::seconds> age;  // for so long
};

// "1000": so many; "36h" (s, m, h or d): so long after their end; "all". INVALID_ARGUMENT naming
// `flag` for other text.
StatusOr<KeepEnded> ParseKeepEnded(std::string_view flag, std::string_view text);

}  // namespace troupe

#endif  // TROUPE_BASE_KEEP_ENDED_H_
