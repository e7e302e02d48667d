#include "cli/output/terminal_line.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/program/program.h"

namespace troupe {

TerminalLine::TerminalLine() {
  const char* terminal = std::getenv("TERM");
  draws_ = isatty(STDERR_FILENO) != 0 && terminal != nullptr && std::strcmp(terminal, "dumb") != 0;
  const char* no_colour = std::getenv("NO_COLOR");
  colours_ = no_colour == nullptr || *no_colour == '\0';
}

TerminalLine::~TerminalLine() {
  if (is_drawn_) std::fputs("\n", stderr);
}

void TerminalLine::Draw(std::string text) {
  if (!draws_) return;
  winsize window{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 1) {
    text = text.substr(0, window.ws_col - 1);
  }
  if (colours_) text = "\033[1m" + text + "\033[0m";
  WriteMessage("\r\033[K" + text);
  std::fflush(stderr);
  is_drawn_ = true;
}

void TerminalLine::Clear() {
  if (is_drawn_) std::fputs("\r\033[K", stderr);
  is_drawn_ = false;
}

}  // namespace troupe
