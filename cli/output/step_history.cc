#include "cli/output/step_history.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/text/printable.h"
#include "cli/output/colour.h"

namespace troupe {
namespace {

constexpr int64_t kMostStrides = 40;
constexpr int64_t kRowsOfTitles = 20;  // the titles precede every 20th row
constexpr Duration kLongestPause = std::chrono::minutes(1);

int64_t StrideOf(int64_t steps) {
  for (int64_t power = 1;; power *= 10) {
    for (const int64_t factor : {1, 2, 5}) {
      if (steps / (factor * power) <= kMostStrides) return factor * power;
    }
  }
}

// Formats the columns of a row after that of the step.
std::string Figures(const std::string& loss, const std::string& validation,
                    const std::string& gradient, const std::string& rate, const std::string& tokens,
                    const std::string& mfu) {
  std::string text = fmt::format("{:>9}  {:>10}  {:>9}  {:>13}  {:>8}  {:>6}", loss, validation,
                                 gradient, rate, tokens, mfu);
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

std::string Titles() {
  return Figures("loss", "validation", "grad norm", "learning rate", "tokens/s", "MFU");
}

std::string FiguresOf(const v1::StepEvent& step) {
  return Figures(fmt::format("{:.4f}", step.loss()),
                 step.has_validation_loss() ? fmt::format("{:.4f}", step.validation_loss()) : "",
                 fmt::format("{:.4f}", step.grad_norm()),
                 fmt::format("{:.3e}", step.learning_rate()),
                 fmt::format("{:.0f}", step.tokens_per_second()),
                 step.has_mfu() ? fmt::format("{:.1f}%", 100 * step.mfu()) : "");
}

}  // namespace

StepHistory::StepHistory(int64_t steps, bool colours)
    : steps_(steps),
      stride_(StrideOf(steps)),
      step_columns_(std::max<size_t>(fmt::to_string(steps).size(), 5)),
      colours_(colours) {}

bool StepHistory::IsShown(const v1::StepEvent& step, MonotonicTime now) const {
  return rows_ == 0 || step.step() % stride_ == 0 || step.step() == steps_ ||
         step.has_validation_loss() || now - last_row_ >= kLongestPause;
}

std::string StepHistory::StepText(const v1::StepEvent& step, MonotonicTime now) {
  if (!IsShown(step, now)) return "";
  std::string text;
  if (rows_ % kRowsOfTitles == 0)
    text = fmt::format("{:>{}}  {}\n", "step", step_columns_, Titles());
  ++rows_;
  last_row_ = now;
  return text + fmt::format("{:>{}}  {}\n", step.step(), step_columns_, FiguresOf(step));
}

std::string StepHistory::EventText(const v1::JobEvent& event) const {
  const Colour colour = colours_ ? ColourOfStateWord(event.event()) : Colour::kNone;
  std::string text = fmt::format("{:>{}}  {}", event.step(), step_columns_,
                                 InColour(colour, PrintableLine(event.event())));
  if (!event.message().empty()) text += " " + PrintableLine(event.message());
  return text + "\n";
}

}  // namespace troupe
