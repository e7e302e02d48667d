// The line that `watch` and `submit --wait` keep redrawing on a terminal: step, loss, tokens/s, MFU, time left. Goes to
// stderr, so that data on stdout stay whole. Not thread-safe.
#ifndef TROUPE_CLI_PROGRESS_LINE_H_
#define TROUPE_CLI_PROGRESS_LINE_H_

#include <string>

#include "troupe/v1/service.pb.h"

namespace troupe {

// "1:02:03", "2:03", "3 s".
std::string DurationText(double seconds);

class ProgressLine {
 public:
  // Draws only where stderr is a terminal that can redraw; in colour unless NO_COLOR is set.
  explicit ProgressLine(int64_t steps);
  ~ProgressLine();

  bool draws() const { return draws_; }
  void Show(const v1::StepEvent& step);
  // Puts `text` on a line of its own above.
  void Say(const std::string& text);

  // The line for `step`; `seconds_per_step` is what the time left is reckoned with. Pure.
  static std::string Text(const v1::StepEvent& step, int64_t steps, double seconds_per_step);

 private:
  void Clear();

  const int64_t steps_;
  bool draws_ = false;
  bool colours_ = false;
  bool drawn_ = false;
  double seconds_per_step_ = 0;  // moving average
};

}  // namespace troupe

#endif  // TROUPE_CLI_PROGRESS_LINE_H_
