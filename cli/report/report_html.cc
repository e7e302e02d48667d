#include "cli/report/report_html.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <limits>

#include "cli/report/bar_chart.h"
#include "cli/report/line_chart.h"
#include "cli/report/plan_drawing.h"
#include "cli/report/trace_drawing.h"
#include "plan/job/message_json.h"
#include "plan/text/scaled.h"

namespace troupe {
namespace {

constexpr double kNotMeasured = std::numeric_limits<double>::quiet_NaN();
constexpr size_t kMostEventsListed = 200;

std::string TimeText(int64_t wall_time_ns) {
  return fmt::format("{:%Y-%m-%d %H:%M:%S} UTC",
                     fmt::gmtime(static_cast<std::time_t>(wall_time_ns / 1'000'000'000)));
}

// A figure of a step, as the charts show it.
struct StepFigure {
  const char* title;
  const char* name;  // in the legend
  double (*value)(const v1::StepEvent&);
  bool is_optional = false;  // kNotMeasured: not measured in this step, which is no gap
  bool (*is_absent)(const v1::StepEvent&) = nullptr;  // whether the step has no such value
};

// A step without a target has no loss.
bool HasNoLoss(const v1::StepEvent& step) { return step.tokens() == 0 && std::isnan(step.loss()); }

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
    {"MFU (%)", "",
     [](const v1::StepEvent& step) { return step.has_mfu() ? 100 * step.mfu() : kNotMeasured; },
     true},
};

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
      loss.series.push_back({kValidationLoss.name, PointsOf(kValidationLoss)});
    }
    Draw(loss, page);
    for (const StepFigure& figure : kFigures) Draw(ChartOf(figure), page);
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

void DrawCharts(const JobReport& report, Markup* page) {
  OpenSection("Steps", page);
  if (report.steps.empty()) {
    page->Element("p", {{"class", "note"}}, "There are no steps yet.");
    CloseSection(page);
    return;
  }
  const bool has_times = std::ranges::any_of(report.steps, &v1::StepEvent::has_wall_time_ns);
  if (has_times) {
    page->Empty("input", {{"type", "radio"}, {"name", "axis"}, {"id", "by-step"}, {"checked", ""}});
    page->Element("label", {{"for", "by-step"}}, "over steps");
    page->Empty("input", {{"type", "radio"}, {"name", "axis"}, {"id", "by-time"}});
    page->Element("label", {{"for", "by-time"}}, "over time since submission");
  }
  page->Open("p", {{"class", "legend"}});
  page->Element("span", {{"class", "swatch of-checkpoint"}}, "");
  page->Text("checkpoint committed");
  page->Element("span", {{"class", "swatch of-recovery"}}, "");
  page->Text("recovered");
  page->Close();
  Charts(report, LineChart::Axis::kStep).DrawAll(page);
  if (has_times) Charts(report, LineChart::Axis::kSeconds).DrawAll(page);
  CloseSection(page);
}

// Divides the mean of the steady steps into the times that block a rank, and the rest.
Bar StepTimeBar(const std::string& label, const v1::Receipt& receipt) {
  const v1::Receipt::Steady& steady = receipt.steady();
  Bar bar = {label, {}};
  if (steady.steps() == 0) return bar;
  double rest = steady.seconds() / static_cast<double>(steady.steps());
  std::vector<BarPart> waits = {{"waiting for data", steady.mean().data_wait_seconds()}};
  for (const v1::CommunicationSeconds& entry : steady.mean().communication()) {
    waits.push_back({"communication: " + entry.purpose(), entry.exposed()});
  }
  for (const BarPart& wait : waits) rest -= wait.value;
  bar.parts.push_back({"computation and the rest", std::max(rest, 0.0)});
  bar.parts.insert(bar.parts.end(), waits.begin(), waits.end());
  return bar;
}

void DrawStepTime(const JobReport& report, Markup* page) {
  OpenSection("Where a step's time goes", page);
  BarChart chart = {"Mean of steady steps, over all ranks", "s", {}};
  if (report.receipt) {
    chart.bars.push_back(StepTimeBar("newest plan", *report.receipt));
    for (const v1::Receipt& other : report.receipt->other_plans()) {
      chart.bars.push_back(StepTimeBar(other.plan_digest().substr(0, 15), other));
    }
  }
  Draw(chart, page);
  if (report.receipt && report.receipt->steady().mean().has_core_wait_seconds()) {
    page->Element("p", {{"class", "note"}},
                  fmt::format("Of this, a rank was without a core for {:.3g} s.",
                              report.receipt->steady().mean().core_wait_seconds()));
  }
  CloseSection(page);
}

void DrawEvents(const JobReport& report, Markup* page) {
  OpenSection("Events", page);
  const size_t count = report.events.size();
  const size_t first = count - std::min(count, kMostEventsListed);
  if (first > 0) {
    page->Element("p", {{"class", "note"}}, fmt::format("{} earlier events are left out", first));
  }
  TextRows rows;
  for (size_t i = first; i < count; ++i) {
    const v1::JobEvent& event = report.events[i];
    rows.emplace_back(TimeText(event.wall_time_ns()),
                      fmt::format("step {}: {} {}", event.step(), event.event(), event.message()));
  }
  DrawRows(rows, page);
  CloseSection(page);
}

TextRows FactsOf(const JobReport& report) {
  const v1::Job& job = report.job;
  TextRows facts = {{"state", EnumText(*v1::JobState_descriptor(), job.state())},
                    {"step", fmt::format("{} of {}", job.step(), job.steps())}};
  if (!report.steps.empty()) {
    const v1::StepEvent& last = report.steps.back();
    facts.emplace_back("loss", HasNoLoss(last) ? "none, without a target" : Figure(last.loss()));
  }
  if (report.receipt && report.receipt->steady().has_tokens_per_second()) {
    const v1::Receipt::Steady& steady = report.receipt->steady();
    facts.emplace_back("tokens/s, steady", Figure(steady.tokens_per_second()));
    if (steady.has_mfu()) {
      facts.emplace_back("MFU, steady", fmt::format("{:.1f}%", 100 * steady.mfu()));
    }
  }
  facts.emplace_back("parameters", Scaled(static_cast<double>(job.plan().parameters()), ""));
  facts.emplace_back("ranks", fmt::to_string(job.plan().ranks_size()));
  facts.emplace_back("restarts", fmt::to_string(job.restarts()));
  return facts;
}

// Draws the reasons for which the figures may mislead.
void DrawSuspicions(const v1::Receipt& receipt, Markup* page) {
  for (const std::string& reason : receipt.suspect())
    page->Element("p", {{"class", "suspect"}}, "suspect: " + reason);
}

void DrawPlanned(const v1::Plan& plan, Markup* page) {
  OpenSection("Layout", page);
  DrawLayout(plan, page);
  CloseSection(page);
  OpenSection("Stages", page);
  DrawStages(plan, page);
  CloseSection(page);
  OpenSection("Memory", page);
  DrawMemory(plan, page);
  CloseSection(page);
}

}  // namespace

std::string ReportHtml(const JobReport& report) {
  const v1::Job& job = report.job;
  Markup page;
  std::string subtitle = "submitted " + TimeText(job.create_wall_time_ns());
  if (!job.creator().empty()) subtitle += " by " + job.creator();
  OpenPage(job.name(), subtitle, &page);
  if (report.receipt) DrawSuspicions(*report.receipt, &page);
  DrawFacts(FactsOf(report), &page);
  if (!job.waiting_for().empty()) page.Element("p", {}, "waits for " + job.waiting_for());
  if (job.has_failure()) {
    page.Element("p", {{"class", "suspect"}},
                 job.failure().cause() + ": " + job.failure().message());
  }
  DrawCharts(report, &page);
  DrawStepTime(report, &page);
  OpenSection("Pipeline", &page);
  DrawSchedule(job.plan(), &page);
  DrawTrace(report.trace, &page);
  CloseSection(&page);
  DrawPlanned(job.plan(), &page);
  DrawEvents(report, &page);
  OpenSection("Receipt", &page);
  if (report.receipt_rows.empty()) {
    page.Element("p", {{"class", "note"}}, "There is no receipt.");
  }
  DrawRows(report.receipt_rows, &page);
  CloseSection(&page);
  ClosePage(&page);
  return page.text();
}

std::string PlanHtml(const v1::JobSpec& spec, const v1::Plan& plan, const StepTime* time,
                     const std::string& fault_cost) {
  Markup page;
  OpenPage("Plan of " + (spec.name().empty() ? "a job" : spec.name()), plan.digest(), &page);
  TextRows facts = {
      {"ranks", fmt::to_string(plan.ranks_size())},
      {"parameters", Scaled(static_cast<double>(plan.parameters()), "")},
      {"per step", Scaled(plan.model_flops_per_step(), "FLOP")},
      {"schedule", plan.schedule().name()},
      {"bubble, equal costs", fmt::format("{:.1f}%", 100 * plan.schedule().bubble_ratio())}};
  if (time != nullptr) {
    facts.emplace_back("step, estimated", fmt::format("{:.4g} s", time->seconds));
    facts.emplace_back("MFU, estimated", fmt::format("{:.1f}%", 100 * time->mfu));
    facts.emplace_back("bubble, estimated", fmt::format("{:.1f}%", 100 * time->bubble_ratio));
  }
  DrawFacts(facts, &page);
  for (const std::string& warning : plan.warnings()) {
    page.Element("p", {{"class", "suspect"}}, "warning: " + warning);
  }
  DrawPlanned(plan, &page);
  OpenSection("Pipeline", &page);
  DrawSchedule(plan, &page);
  CloseSection(&page);
  OpenSection("Traffic", &page);
  DrawTraffic(plan, &page);
  CloseSection(&page);
  OpenSection("Notes", &page);
  page.Element("p", {}, fault_cost);
  DrawLines(plan.schedule_choice(), &page);
  DrawLines(plan.ownership(), &page);
  DrawLines(plan.cannot_fix(), &page);
  CloseSection(&page);
  ClosePage(&page);
  return page.text();
}

}  // namespace troupe
