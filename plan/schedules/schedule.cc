#include "plan/schedules/schedule.h"

#include <charconv>

namespace troupe {

std::string ToText(const Action& action) {
  return fmt::format("{}{}.{}", static_cast<char>(action.kind), action.chunk, action.microbatch);
}

StatusOr<Action> ParseAction(std::string_view text) {
  Action action;
  const char* end = text.data() + text.size();
  if (!text.empty() && std::string_view("FIWB").find(text[0]) != std::string_view::npos) {
    action.kind = static_cast<ActionKind>(text[0]);
    const auto chunk = std::from_chars(text.data() + 1, end, action.chunk);
    if (chunk.ec == std::errc() && chunk.ptr != end && *chunk.ptr == '.') {
      const auto microbatch = std::from_chars(chunk.ptr + 1, end, action.microbatch);
      if (microbatch.ec == std::errc() && microbatch.ptr == end && action.chunk >= 0 &&
          action.microbatch >= 0) {
        return action;
      }
    }
  }
  return InvalidArgument("action \"{}\" is not of the form F0.1", text.substr(0, 40));
}

}  // namespace troupe
