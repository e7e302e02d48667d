#include "cli/progress_line.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/program/program.h"

namespace troupe {
namespace {

// The weight of the newest step in the moving average from which the time left is computed.
constexpr double kNewestWeight = 0.1;

}  // namespace

std::string DurationText(double seconds) {
  const int64_t whole = static_cast<int64_t>(std::clamp(seconds, 0.0, 1e12) + 0.5);
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

ProgressLine::ProgressLine(int64_t steps) : steps_(steps) {
  const char* terminal = std::getenv("TERM");
  draws_ = isatty(STDERR_FILENO) != 0 && terminal != nullptr && std::strcmp(terminal, "dumb") != 0;
  const char* no_colour = std::getenv("NO_COLOR");
  colours_ = no_colour == nullptr || *no_colour == '\0';
}

ProgressLine::~ProgressLine() {
  if (drawn_) std::fputs("\n", stderr);
}

std::string ProgressLine::Text(const v1::StepEvent& step, int64_t steps, double seconds_per_step) {
  std::string text = fmt::format("step {}/{}  loss {:.4f}  {:.0f} tokens/s", step.step(), steps,
                                 step.loss(), step.tokens_per_second());
  if (step.has_mfu()) text += fmt::format("  MFU {:.1f}%", 100 * step.mfu());
  const int64_t left = std::max<int64_t>(steps - step.step(), 0);
  return text +
         fmt::format("  {} left", DurationText(static_cast<double>(left) * seconds_per_step));
}

void ProgressLine::Show(const v1::StepEvent& step) {
  seconds_per_step_ = seconds_per_step_ == 0 ? step.step_seconds()
                                             : (1 - kNewestWeight) * seconds_per_step_ +
                                                   kNewestWeight * step.step_seconds();
  if (!draws_) return;
  std::string text = Text(step, steps_, seconds_per_step_);
  winsize window{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 1) {
    text = text.substr(0, window.ws_col - 1);
  }
  if (colours_) text = "\033[1m" + text + "\033[0m";
  WriteMessage("\r\033[K" + text);
  std::fflush(stderr);
  drawn_ = true;
}

void ProgressLine::PrintLine(const std::string& text) {
  Clear();
  PrintMessage("{}\n", text);
}

void ProgressLine::Clear() {
  if (drawn_) std::fputs("\r\033[K", stderr);
  drawn_ = false;
}

}  // namespace troupe
