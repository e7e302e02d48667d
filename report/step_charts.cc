#include "report/step_charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "report/legend.h"
#include "report/line_chart.h"
#include "report/text/json_text.h"

namespace troupe {
namespace {

constexpr double kNotMeasured = std::numeric_limits<double>::quiet_NaN();

// A figure of a step, as the charts show it.
struct StepFigure {
  const char* title;
  const char* name;  // in the legend
  double (*value)(const v1::StepEvent&);
  bool is_optional = false;  // kNotMeasured: not measured in this step, which is no gap
  bool (*is_absent)(const v1::StepEvent&) = nullptr;  // whether the step has no such value
};

constexpr StepFigure kLoss = {
    "Loss", "training", [](const v1::StepEvent& step) { return step.loss(); }, false, HasNoLoss};
constexpr StepFigure kValidationLoss = {"", "validation",
                                        [](const v1::StepEvent& step) {
                                          return step.has_validation_loss() ? step.validation_loss()
                                                                            : kNotMeasured;
                                        },
                                        true};
constexpr StepFigure kFigures[] = {
    {"Gradient norm", "", [](const v1::StepEvent& step) { return step.grad_norm(); }},
    {"Learning rate", "", [](const v1::StepEvent& step) { return step.learning_rate(); }},
    {"Tokens per second", "", [](const v1::StepEvent& step) { return step.tokens_per_second(); }},
};
constexpr StepFigure kMfu = {
    "MFU (%)", "",
    [](const v1::StepEvent& step) { return step.has_mfu() ? 100 * step.mfu() : kNotMeasured; },
    true};

// The charts of a job over one axis.
class Charts {
 public:
  Charts(const JobReport& report, LineChart::Axis axis) : report_(report), axis_(axis) {
    for (const v1::JobEvent& event : report.events) {
      const bool is_checkpoint = event.event() == "CHECKPOINT_COMMITTED";
      if (!is_checkpoint && event.event() != "RECOVERED") continue;
      marks_.push_back(
          {is_checkpoint ? ChartMark::Kind::kCheckpoint : ChartMark::Kind::kRecovery,
           axis == LineChart::Axis::kStep ? static_cast<double>(event.step())
                                          : SecondsOf(event.wall_time_ns()),
           fmt::format("step {}: {} {}", event.step(), event.event(), event.message())});
    }
  }

  void DrawAll(Markup* page) const {
    page->Open("div",
               {{"class", axis_ == LineChart::Axis::kStep ? "charts by-step" : "charts by-time"}});
    LineChart loss = ChartOf(kLoss);
    loss.value = "loss";
    if (std::ranges::any_of(report_.steps, &v1::StepEvent::has_validation_loss)) {
      loss.title = "Loss, training and validation";
      loss.series.push_back({kValidationLoss.name, PointsOf(kValidationLoss), /*is_sparse=*/true});
    }
    Draw(loss, page);
    for (const StepFigure& figure : kFigures) Draw(ChartOf(figure), page);
    if (std::ranges::any_of(report_.steps, &v1::StepEvent::has_mfu)) Draw(ChartOf(kMfu), page);
    page->Close();
  }

 private:
  double SecondsOf(int64_t wall_time_ns) const {
    return static_cast<double>(wall_time_ns - report_.job.create_wall_time_ns()) * 1e-9;
  }

  std::vector<ChartPoint> PointsOf(const StepFigure& figure) const {
    std::vector<ChartPoint> points;
    for (const v1::StepEvent& step : report_.steps) {
      if (axis_ == LineChart::Axis::kSeconds && !step.has_wall_time_ns()) continue;
      const double y = figure.value(step);
      if (figure.is_optional && std::isnan(y)) continue;
      points.push_back({axis_ == LineChart::Axis::kStep ? static_cast<double>(step.step())
                                                        : SecondsOf(step.wall_time_ns()),
                        y, figure.is_absent != nullptr && figure.is_absent(step)});
    }
    return points;
  }

  LineChart ChartOf(const StepFigure& figure) const {
    LineChart chart;
    chart.title = figure.title;
    chart.axis = axis_;
    chart.series = {{figure.name, PointsOf(figure)}};
    chart.marks = marks_;
    return chart;
  }

  const JobReport& report_;
  const LineChart::Axis axis_;
  std::vector<ChartMark> marks_;
};

}  // namespace

void DrawStepCharts(const JobReport& report, Markup* page) {
  if (report.steps.empty()) {
    page->Element("p", {{"class", "note"}},
                  IsEndState(report.job.state()) ? "No step was made." : "There are no steps yet.");
    return;
  }
  if (report.all_steps && *report.all_steps > static_cast<int64_t>(report.steps.size())) {
    page->Element(
        "p", {{"class", "note"}},
        fmt::format("The curves show {} of {} steps.", report.steps.size(), *report.all_steps));
  }
  const bool has_times = std::ranges::any_of(report.steps, &v1::StepEvent::has_wall_time_ns);
  if (has_times) {
    page->Empty("input", {{"type", "radio"}, {"name", "axis"}, {"id", "by-step"}, {"checked", ""}});
    page->Element("label", {{"for", "by-step"}}, "over steps");
    page->Empty("input", {{"type", "radio"}, {"name", "axis"}, {"id", "by-time"}});
    page->Element("label", {{"for", "by-time"}}, "over time since submission");
  }
  DrawLegend({{"of-checkpoint", "checkpoint committed"}, {"of-recovery", "recovered"}}, page);
  Charts(report, LineChart::Axis::kStep).DrawAll(page);
  if (has_times) Charts(report, LineChart::Axis::kSeconds).DrawAll(page);
  if (StepsLackMfu(report)) page->Element("p", {{"class", "note"}}, kPeakNotKnown);
}

}  // namespace troupe
