#include "cli/output/progress_line.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/program/program.h"
#include "cli/output/duration_text.h"

namespace troupe {
namespace {

// The weight of the newest step in the moving average from which the time left is computed.
constexpr double kNewestWeight = 0.1;

}  // namespace

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
  line_.Draw(Text(step, steps_, seconds_per_step_));
}

void ProgressLine::PrintLine(const std::string& text) {
  line_.Clear();
  PrintMessage("{}\n", text);
}

}  // namespace troupe
