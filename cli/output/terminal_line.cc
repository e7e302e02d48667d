#include "cli/output/terminal_line.h"

#include <unistd.h>

#include <cstdio>

#include "base/program/program.h"
#include "base/text/display_width.h"
#include "base/text/printable.h"
#include "cli/output/colour.h"
#include "cli/output/text_style.h"

namespace troupe {

TerminalLine::TerminalLine()
    : draws_(IsCapableTerminal(STDERR_FILENO)), shows_colours_(ShowsColours(STDERR_FILENO)) {}

TerminalLine::~TerminalLine() {
  if (is_drawn_) std::fputs("\n", stderr);
}

// In the last column some terminals begin a new line.
size_t TerminalLine::columns() const { return TerminalColumns(STDERR_FILENO) - 1; }

void TerminalLine::Draw(const std::string& text) {
  if (!draws_) return;
  const std::string printable = PrintableLine(text);
  std::string shown(FirstDisplayColumns(printable, columns()));
  if (shows_colours_) shown = "\033[1m" + shown + "\033[0m";
  WriteMessage("\r\033[K" + shown);
  std::fflush(stderr);
  is_drawn_ = true;
}

void TerminalLine::Clear() {
  if (is_drawn_) std::fputs("\r\033[K", stderr);
  is_drawn_ = false;
}

}  // namespace troupe
