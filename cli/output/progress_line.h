// The line that `watch` and `submit --wait` redraw on a terminal: step, loss, tokens/s, MFU, time
// left. It goes to stderr, so that data on stdout remain intact. Not thread-safe.
#ifndef TROUPE_CLI_OUTPUT_PROGRESS_LINE_H_
#define TROUPE_CLI_OUTPUT_PROGRESS_LINE_H_

#include <cstddef>
#include <optional>
#include <string>

#include "cli/output/terminal_line.h"
#include "troupe/v1/service.pb.h"

namespace troupe {

class ProgressLine {
 public:
  // `has_ended`: the job has ended before its steps are shown, so that no time is left.
  ProgressLine(int64_t steps, bool has_ended) : steps_(steps), has_ended_(has_ended) {}

  bool draws() const { return line_.draws(); }
  bool shows_colours() const { return line_.shows_colours(); }
  // The columns that a line above may have now.
  size_t columns() const { return line_.columns(); }
  void Show(const v1::StepEvent& step);
  // Prints `text` on a separate line above, as PrintMessage shows it.
  void PrintLine(const std::string& text);
  // Prints `lines`, each with a newline, above. REQUIRES: what others chose of them is shown as
  // PrintableLine does.
  void PrintShown(const std::string& lines);

  // Returns the line for `step`, of at most `columns` characters; where that is not enough, MFU,
  // tokens/s and loss are left out in this order, and step and time left stay. Without
  // `seconds_per_step`, and after the last step, there is no time left. Pure.
  static std::string Text(const v1::StepEvent& step, int64_t steps,
                          std::optional<double> seconds_per_step, size_t columns);

 private:
  TerminalLine line_;
  const int64_t steps_;
  const bool has_ended_;
  std::optional<double> seconds_per_step_;  // moving average
};

}  // namespace troupe

#endif  // TROUPE_CLI_OUTPUT_PROGRESS_LINE_H_
