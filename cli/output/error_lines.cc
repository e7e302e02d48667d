#include "cli/output/error_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/text/printable.h"
#include "plan/job/violation.h"

namespace troupe {

namespace {

constexpr int kMostErrorLines = 20;

// Returns the first lines of `text`, and a line with the number of the others.
std::string FirstLines(std::string_view text) {
  size_t end = 0;
  for (int line = 0; line < kMostErrorLines && end < text.size(); ++line)
    end = std::min(text.find('\n', end), text.size() - 1) + 1;
  if (end == text.size()) return std::string(text);
  const auto others = std::ranges::count(text.substr(end), '\n') + 1;
  return fmt::format("{}and {} more", text.substr(0, end), others);
}

}  // namespace

std::string ErrorLines(const Status& status) {
  // Violations have shown their values already.
  return ViolationsOf(status).empty() ? PrintableLine(Message(status))
                                      : PrintableLines(FirstLines(Message(status)));
}

}  // namespace troupe
