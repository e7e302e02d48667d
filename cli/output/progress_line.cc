#include "cli/output/progress_line.h"

#include <fmt/format.h>

#include <vector>

#include "base/program/program.h"
#include "report/text/duration_text.h"
#include "report/text/text_columns.h"

namespace troupe {
namespace {

// The weight of the newest step in the moving average from which the time left is computed.
constexpr double kNewestWeight = 0.1;

}  // namespace

// The numbers have fixed widths, so that the line does not move from step to step.
std::string ProgressLine::Text(const v1::StepEvent& step, int64_t steps,
                               std::optional<double> seconds_per_step, size_t columns) {
  const std::string all = fmt::to_string(steps);
  std::vector<LinePart> parts = {{fmt::format("step {:>{}}/{}", step.step(), all.size(), all), 4},
                                 {fmt::format("loss {:7.4f}", step.loss()), 3},
                                 {fmt::format("{:6.0f} tokens/s", step.tokens_per_second()), 2}};
  if (step.has_mfu()) parts.push_back({fmt::format("MFU {:4.1f}%", 100 * step.mfu()), 1});
  const int64_t left = steps - step.step();
  if (seconds_per_step && left > 0) {
    const double seconds = static_cast<double>(left) * *seconds_per_step;
    parts.push_back({fmt::format("{:>7} left", DurationText(seconds)), 4});
  }
  return FittingLine(std::move(parts), columns);
}

void ProgressLine::Show(const v1::StepEvent& step) {
  seconds_per_step_ = seconds_per_step_ ? (1 - kNewestWeight) * *seconds_per_step_ +
                                              kNewestWeight * step.step_seconds()
                                        : step.step_seconds();
  if (!draws()) return;
  line_.Draw(Text(step, steps_, has_ended_ ? std::nullopt : seconds_per_step_, line_.columns()));
}

void ProgressLine::PrintLine(const std::string& text) {
  line_.Clear();
  PrintMessage("{}\n", text);
}

void ProgressLine::PrintShown(const std::string& lines) {
  line_.Clear();
  WriteMessage(lines);
}

}  // namespace troupe
