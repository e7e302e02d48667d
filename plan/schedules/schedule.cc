#include "plan/schedules/schedule.h"

#include <charconv>

namespace troupe {

std::string ToText(const Action& action) {
  return fmt::format("{}{}.{}", static_cast<char>(action.kind), action.chunk, action.microbatch);
}

std::vector<std::string> ToTexts(const std::vector<Action>& actions) {
  std::vector<std::string> texts;
  bool joins = false;
  for (const Action& action : actions) {
    if (joins) {
      texts.back() += "|" + ToText(action);
    } else {
      texts.push_back(ToText(action));
    }
    joins = action.overlaps_next;
  }
  return texts;
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

StatusOr<std::vector<Action>> ParseActions(std::string_view text) {
  const size_t bar = text.find('|');
  TROUPE_ASSIGN_OR_RETURN(Action first, ParseAction(text.substr(0, bar)));
  if (bar == std::string_view::npos) return std::vector<Action>{first};
  TROUPE_ASSIGN_OR_RETURN(const Action second, ParseAction(text.substr(bar + 1)));
  if (first.kind != ActionKind::kForward || second.kind == ActionKind::kForward) {
    return InvalidArgument("actions \"{}\" are not a forward and a backward", text.substr(0, 40));
  }
  first.overlaps_next = true;
  return std::vector<Action>{first, second};
}

std::vector<std::vector<int>> LoopedChunks(const PipelineShape& shape) {
  std::vector<std::vector<int>> chunks(shape.stages);
  for (int chunk = 0; chunk < shape.chunks(); ++chunk) {
    chunks[chunk % shape.stages].push_back(chunk);
  }
  return chunks;
}

std::vector<std::vector<int>> VShapedChunks(const PipelineShape& shape) {
  std::vector<std::vector<int>> chunks;
  for (int rank = 0; rank < shape.stages; ++rank) {
    chunks.push_back({rank, 2 * shape.stages - 1 - rank});
  }
  return chunks;
}

}  // namespace troupe
