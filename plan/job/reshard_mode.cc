#include "plan/job/reshard_mode.h"

#include <charconv>

namespace troupe {

std::string ReshardMode::ToText() const {
  switch (kind) {
    case Kind::kTrue:
      return "true";
    case Kind::kFalse:
      return "false";
    case Kind::kRun:
      break;
  }
  return std::to_string(run);
}

std::optional<ReshardMode> ParseReshardMode(std::string_view text) {
  for (const ReshardMode word : {kReshardTrue, kReshardFalse}) {
    if (text == word.ToText()) return word;
  }
  int run = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), run);
  const bool is_number = error == std::errc() && end == text.data() + text.size();
  if (!is_number || run <= 0 || text[0] == '0') return std::nullopt;
  return ReshardRun(run);
}

}  // namespace troupe
