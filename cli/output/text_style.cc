#include "cli/output/text_style.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "base/text/printable.h"
#include "base/text/wrapped.h"
#include "cli/output/colour.h"
#include "cli/output/relative_path.h"

namespace troupe {
namespace {

constexpr size_t kUnknownColumns = 80;
constexpr size_t kMostStatedColumns = 10'000;

}  // namespace

std::optional<size_t> ColumnsIn(const char* text) {
  if (text == nullptr) return std::nullopt;
  const std::string_view digits = text;
  size_t columns = 0;
  const char* const last = digits.data() + digits.size();
  const auto [end, error] = std::from_chars(digits.data(), last, columns);
  if (error != std::errc() || end != last || columns == 0 || columns > kMostStatedColumns)
    return std::nullopt;
  return columns;
}

size_t TerminalColumns(int descriptor) {
  if (const std::optional<size_t> stated = ColumnsIn(std::getenv("COLUMNS"))) return *stated;
  winsize window{};
  const bool is_known = ioctl(descriptor, TIOCGWINSZ, &window) == 0 && window.ws_col > 0;
  return is_known ? window.ws_col : kUnknownColumns;
}

std::string WorkingDirectoryOrNone() {
  std::error_code error;
  const std::filesystem::path here = std::filesystem::current_path(error);
  return error ? "" : here.string();
}

std::string PathFromHere(std::string_view path) {
  return RelativePath(path, WorkingDirectoryOrNone());
}

TextStyle TextStyleOf(int descriptor) {
  const bool is_terminal = isatty(descriptor) != 0;
  return {.colours = ShowsColours(descriptor),
          .columns = is_terminal ? TerminalColumns(descriptor) : kAnyColumns,
          .directory = is_terminal ? WorkingDirectoryOrNone() : ""};
}

TextStyle TextStyleFromHere(int descriptor) {
  TextStyle style = TextStyleOf(descriptor);
  style.directory = WorkingDirectoryOrNone();
  return style;
}

std::string WrappedLine(std::string_view text, const TextStyle& style) {
  return Wrapped(PrintableLine(text), style.columns, "  ", LongWords::kBroken) + "\n";
}

}  // namespace troupe
