#include "report/report_html.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <vector>

#include "report/bar_chart.h"
#include "report/facts.h"
#include "report/page.h"
#include "report/plan_drawing.h"
#include "report/receipt_drawing.h"
#include "report/step_charts.h"
#include "report/trace_drawing.h"

namespace troupe {
namespace {

constexpr size_t kMostEventsListed = 200;

std::string TimeText(int64_t wall_time_ns) {
  return fmt::format("{:%Y-%m-%d %H:%M:%S} UTC",
                     fmt::gmtime(static_cast<std::time_t>(wall_time_ns / 1'000'000'000)));
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
  OpenSection("step-time", "Where a step's time goes", page);
  BarChart chart;
  chart.title = "Mean of steady steps, over all ranks";
  chart.unit = "s";
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
  OpenSection("events", "Events", page);
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

// States the reasons for which the figures may mislead.
void DrawSuspicions(const v1::Receipt& receipt, Markup* page) {
  const int count = receipt.suspect_size();
  if (count == 0) return;
  DrawBanner(fmt::format("The figures may mislead, for {} reason{}", count, count == 1 ? "" : "s"),
             receipt.suspect(), page);
}

void DrawPlanned(const v1::Plan& plan, Markup* page) {
  OpenSection("layout", "Layout", page);
  DrawLayout(plan, page);
  CloseSection(page);
  OpenSection("stages", "Stages", page);
  DrawStages(plan, page);
  CloseSection(page);
  OpenSection("memory", "Memory", page);
  DrawMemory(plan, page);
  CloseSection(page);
}

// States why the job waits, or why it failed.
void DrawReasons(const v1::Job& job, Markup* page) {
  if (!job.waiting_for().empty()) page->Element("p", {}, "waits for " + job.waiting_for());
  if (job.has_failure()) {
    page->Element("p", {{"class", "suspect"}},
                  job.failure().cause() + ": " + job.failure().message());
  }
}

}  // namespace

std::string SubmissionText(const v1::Job& job) {
  const std::string text = "submitted " + TimeText(job.create_wall_time_ns());
  return job.creator().empty() ? text : text + " by " + job.creator();
}

void DrawReport(const JobReport& report, Markup* page) {
  const v1::Job& job = report.job;
  page->Open("section", {{"id", "summary"}});
  // Without a step there are no figures.
  if (report.receipt && !report.steps.empty()) DrawSuspicions(*report.receipt, page);
  DrawFacts(FactsOf(report), page);
  page->Close();
  OpenSection("steps", "Steps", page);
  DrawStepCharts(report, page);
  CloseSection(page);
  DrawStepTime(report, page);
  OpenSection("pipeline", "Pipeline", page);
  DrawSchedule(job.plan(), page);
  DrawTrace(report.trace, page);
  CloseSection(page);
  DrawPlanned(job.plan(), page);
  DrawEvents(report, page);
  OpenSection("receipt", "Receipt", page);
  DrawReceipt(report, page);
  CloseSection(page);
}

std::string ReportHtml(const JobReport& report) {
  Markup page;
  OpenPage(report.job.name(), SubmissionText(report.job), &page);
  DrawReasons(report.job, &page);
  DrawReport(report, &page);
  ClosePage(&page);
  return page.text();
}

std::string PlanHtml(const v1::JobSpec& spec, const v1::Plan& plan, const StepTime* time,
                     const std::string& fault_cost) {
  Markup page;
  OpenPage("Plan of " + (spec.name().empty() ? "a job" : spec.name()), plan.digest(), &page);
  page.Open("section", {{"id", "summary"}});
  if (const int count = plan.warnings_size(); count > 0) {
    DrawBanner(fmt::format("{} warning{}", count, count == 1 ? "" : "s"), plan.warnings(), &page);
  }
  DrawFacts(FactsOf(spec, plan, time), &page);
  page.Close();
  DrawPlanned(plan, &page);
  OpenSection("pipeline", "Pipeline", &page);
  DrawSchedule(plan, &page);
  CloseSection(&page);
  OpenSection("traffic", "Traffic", &page);
  DrawTraffic(plan, &page);
  CloseSection(&page);
  OpenSection("notes", "Notes", &page);
  page.Element("p", {}, fault_cost);
  DrawLines(plan.schedule_choice(), &page);
  DrawLines(plan.ownership(), &page);
  DrawLines(plan.cannot_fix(), &page);
  CloseSection(&page);
  ClosePage(&page);
  return page.text();
}

}  // namespace troupe
