#include "cli/output/step_history.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <utility>

#include "base/text/printable.h"
#include "base/text/wrapped.h"
#include "cli/output/colour.h"
#include "cli/output/relative_path.h"

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

// A column of the rows after that of the step.
struct HistoryFigure {
  const char* title;
  size_t columns;
  int importance;
  std::string (*text)(const v1::StepEvent& step);
};

constexpr size_t kBetweenFigures = 2;

const HistoryFigure kFigures[] = {
    {"loss", 9, 6, [](const v1::StepEvent& step) { return fmt::format("{:.4f}", step.loss()); }},
    {"validation", 10, 5,
     [](const v1::StepEvent& step) {
       return step.has_validation_loss() ? fmt::format("{:.4f}", step.validation_loss()) : "";
     }},
    {"grad norm", 9, 3,
     [](const v1::StepEvent& step) { return fmt::format("{:.4f}", step.grad_norm()); }},
    {"learning rate", 13, 4,
     [](const v1::StepEvent& step) { return fmt::format("{:.3e}", step.learning_rate()); }},
    {"tokens/s", 8, 2,
     [](const v1::StepEvent& step) { return fmt::format("{:.0f}", step.tokens_per_second()); }},
    {"MFU", 6, 1, [](const v1::StepEvent& step) {
       return step.has_mfu() ? fmt::format("{:.1f}%", 100 * step.mfu()) : "";
     }}};

// Formats a row, without spaces at its end, and a newline.
std::string HistoryRow(const std::string& step, size_t step_columns,
                       const std::vector<size_t>& figures,
                       const std::function<std::string(const HistoryFigure&)>& text) {
  std::string row = fmt::format("{:>{}}", step, step_columns);
  for (const size_t index : figures) {
    const HistoryFigure& figure = kFigures[index];
    row += fmt::format("{:>{}}", text(figure), figure.columns + kBetweenFigures);
  }
  row.erase(row.find_last_not_of(' ') + 1);
  return row + "\n";
}

}  // namespace

StepHistory::StepHistory(int64_t steps, bool colours, std::string directory)
    : steps_(steps),
      stride_(StrideOf(steps)),
      step_columns_(std::max<size_t>(fmt::to_string(steps).size(), 5)),
      colours_(colours),
      directory_(std::move(directory)) {}

bool StepHistory::IsShown(const v1::StepEvent& step, MonotonicTime now) const {
  return rows_ == 0 || step.step() % stride_ == 0 || step.step() == steps_ ||
         step.has_validation_loss() || now - last_row_ >= kLongestPause;
}

std::vector<size_t> StepHistory::FiguresWithin(size_t columns) const {
  std::vector<size_t> figures;
  size_t width = step_columns_;
  for (const HistoryFigure& figure : kFigures) {
    figures.push_back(figures.size());
    width += kBetweenFigures + figure.columns;
  }
  while (width > columns && figures.size() > 1) {
    const auto least = std::ranges::min_element(
        figures, {}, [](size_t index) { return kFigures[index].importance; });
    width -= kBetweenFigures + kFigures[*least].columns;
    figures.erase(least);
  }
  return figures;
}

std::string StepHistory::StepText(const v1::StepEvent& step, MonotonicTime now, size_t columns) {
  if (!IsShown(step, now)) return "";
  std::vector<size_t> figures = FiguresWithin(columns);
  std::string text;
  if (rows_ % kRowsOfTitles == 0 || figures != figures_) {
    text = HistoryRow("step", step_columns_, figures,
                      [](const HistoryFigure& figure) { return std::string(figure.title); });
  }
  ++rows_;
  last_row_ = now;
  figures_ = std::move(figures);
  return text + HistoryRow(fmt::to_string(step.step()), step_columns_, figures_,
                           [&step](const HistoryFigure& figure) { return figure.text(step); });
}

std::string StepHistory::EventText(const v1::JobEvent& event, size_t columns) const {
  const std::string word = PrintableLine(event.event());
  const std::string begin = fmt::format("{:>{}}  ", event.step(), step_columns_);
  std::string text = word;
  if (!event.message().empty())
    text += " " + PrintableLine(WithRelativePaths(event.message(), directory_));
  std::string lines = WrappedBehind(begin, text, columns) + "\n";
  // A word that is broken is the name of no state.
  if (colours_ && lines.compare(begin.size(), word.size(), word) == 0)
    lines.replace(begin.size(), word.size(), InColour(ColourOfStateWord(event.event()), word));
  return lines;
}

}  // namespace troupe
