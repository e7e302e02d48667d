// The line that `watch` and `submit --wait` redraw on a terminal: step, loss, tokens/s, MFU, time
// left. It goes to stderr, so that data on stdout remain intact. Not thread-safe.
#ifndef TROUPE_CLI_OUTPUT_PROGRESS_LINE_H_
#define TROUPE_CLI_OUTPUT_PROGRESS_LINE_H_

#include <string>

#include "cli/output/terminal_line.h"
#include "troupe/v1/service.pb.h"

namespace troupe {

class ProgressLine {
 public:
  explicit ProgressLine(int64_t steps) : steps_(steps) {}

  bool draws() const { return line_.draws(); }
  void Show(const v1::StepEvent& step);
  // Prints `text` on a separate line above.
  void PrintLine(const std::string& text);

  // Returns the line for `step`; the time left is computed from `seconds_per_step`. Pure.
  static std::string Text(const v1::StepEvent& step, int64_t steps, double seconds_per_step);

 private:
  TerminalLine line_;
  const int64_t steps_;
  double seconds_per_step_ = 0;  // moving average
};

}  // namespace troupe

#endif  // TROUPE_CLI_OUTPUT_PROGRESS_LINE_H_
