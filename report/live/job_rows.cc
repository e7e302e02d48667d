#include "report/live/job_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/clock.h"
#include "base/text/count_text.h"
#include "plan/job/job_name.h"
#include "report/live/frame.h"
#include "report/live/links.h"
#include "report/live/live_text.h"
#include "report/live/state_mark.h"
#include "report/page.h"
#include "report/text/duration_text.h"
#include "report/text/json_text.h"

namespace troupe {
namespace {

constexpr size_t kMostQueuedDrawn = 50;
constexpr size_t kMostNamespacesDrawn = 50;
// Names have at most 127 characters, and a reason is complete on the page of its job.
constexpr size_t kMostNameCharacters = 130;
constexpr size_t kMostReasonCharacters = 300;

void DrawTitles(std::initializer_list<const char*> titles, Markup* page) {
  page->Open("thead");
  page->Open("tr");
  for (const char* title : titles) page->Element("th", {{"scope", "col"}}, title);
  page->Close();
  page->Close();
}

void DrawNameCell(const v1::Job& job, Markup* page) {
  page->Open("td", {{"class", "name"}});
  page->Element("a", {{"href", JobLink(job.name())}},
                Clipped(JobId(job.name()), kMostNameCharacters));
  page->Close();
}

void DrawReasonCell(const v1::Job& job, Markup* page) {
  page->Open("td", {{"class", "reason"}});
  const std::string reason = ReasonOf(job);
  if (!reason.empty()) page->Element("div", {}, Clipped(reason, kMostReasonCharacters));
  page->Close();
}

void DrawAgeCell(const v1::Job& job, int64_t now_ns, Markup* page) {
  page->Open("td", {{"class", "number"}});
  if (job.create_wall_time_ns() != 0) {
    page->Element("span",
                  {{"title", "submitted " + UtcText(job.create_wall_time_ns() / 1'000'000'000)}},
                  AgeText(job.create_wall_time_ns(), now_ns));
  }
  page->Close();
}

void DrawProgressCell(const v1::Job& job, Markup* page) {
  page->Open("td", {{"class", "progress"}});
  if (job.steps() > 0) {
    page->Element("progress",
                  {{"max", fmt::to_string(job.steps())}, {"value", fmt::to_string(job.step())}},
                  "");
    page->Element("span", {}, fmt::format("{} of {}", job.step(), job.steps()));
  }
  page->Close();
}

void DrawJobRow(const v1::Job& job, int64_t now_ns, Markup* page) {
  page->Open("tr");
  DrawNameCell(job, page);
  page->Open("td");
  DrawJobState(job, page);
  page->Close();
  DrawProgressCell(job, page);
  page->Element("td", {{"class", "number"}},
                job.has_loss() ? fmt::format("{:.4f}", job.loss()) : "");
  DrawAgeCell(job, now_ns, page);
  DrawReasonCell(job, page);
  page->Close();
}

// A link that filters. The one of the present page is marked, and it has no number, because the
// others are not known then.
void DrawFilter(const std::string& text, const std::string& link, bool is_chosen, Markup* page) {
  Markup::Attributes attributes = {{"href", link}};
  if (is_chosen) attributes.push_back({"aria-current", "page"});
  page->Element("a", attributes, text);
}

void DrawStateFilters(const ClusterPageView& view, Markup* page) {
  std::map<std::string, size_t> counts;
  for (const v1::Job& job : view.jobs) ++counts[StateText(job)];
  const bool is_filtered = !view.state_filter.empty();
  page->Open("nav", {{"class", "filters"}, {"aria-label", "jobs by state"}});
  DrawFilter(is_filtered ? "all" : fmt::format("all {}", view.jobs.size()),
             ClusterLink("", view.namespace_filter), !is_filtered, page);
  const auto draw_state = [&](const std::string& state) {
    if (!is_filtered && !counts.contains(state)) return;
    DrawFilter(is_filtered ? state : fmt::format("{} {}", state, counts.at(state)),
               ClusterLink(state, view.namespace_filter), state == view.state_filter, page);
  };
  const auto& states = *v1::JobState_descriptor();
  for (int i = 0; i < states.value_count(); ++i) {
    const auto state = static_cast<v1::JobState>(states.value(i)->number());
    if (state != v1::JOB_STATE_UNSPECIFIED) draw_state(StateText(state));
  }
  draw_state(kMovingState);
  page->Close();
}

void DrawNamespaceFilters(const ClusterPageView& view, Markup* page) {
  std::map<std::string, size_t> counts;
  for (const v1::Job& job : view.jobs) ++counts[std::string(NamespaceOf(JobId(job.name())))];
  const bool is_filtered = !view.namespace_filter.empty();
  if (!is_filtered && counts.size() < 2) return;
  page->Open("nav", {{"class", "filters"}, {"aria-label", "jobs by namespace"}});
  page->Element("span", {}, "namespace");
  DrawFilter("all", ClusterLink(view.state_filter, ""), !is_filtered, page);
  if (is_filtered) counts.try_emplace(view.namespace_filter, 0);
  size_t drawn = 0;
  for (const auto& [name, count] : counts) {
    if (drawn++ == kMostNamespacesDrawn) break;
    const std::string text = Clipped(name, kMostNameCharacters);
    DrawFilter(is_filtered ? text : fmt::format("{} {}", text, count),
               ClusterLink(view.state_filter, name), name == view.namespace_filter, page);
  }
  page->Close();
  if (counts.size() > kMostNamespacesDrawn) {
    page->Element("p", {{"class", "note"}},
                  CountText(counts.size() - kMostNamespacesDrawn, "more namespace is",
                            "more namespaces are") +
                      " left out.");
  }
}

std::string NoJobsText(const ClusterPageView& view) {
  if (view.state_filter.empty() && view.namespace_filter.empty()) return "There are no jobs.";
  std::string text = view.sees_all_jobs ? "No job" : "No job that you see";
  if (!view.state_filter.empty()) text += " is " + Clipped(view.state_filter, kMostNameCharacters);
  if (!view.namespace_filter.empty()) {
    text += view.state_filter.empty() ? " is" : "";
    text += " in the namespace " + Clipped(view.namespace_filter, kMostNameCharacters);
  }
  return text + ".";
}

}  // namespace

void DrawQueue(const ClusterPageView& view, Markup* page) {
  if (!view.state_filter.empty() || !view.jobs_error.empty()) return;
  std::vector<const v1::Job*> queued;
  for (auto job = view.jobs.rbegin(); job != view.jobs.rend(); ++job)
    if (job->state() == v1::JOB_STATE_QUEUED) queued.push_back(&*job);
  OpenSection("queue", "Queue", page);
  if (queued.empty()) {
    page->Element("p", {{"class", "note"}},
                  view.more_jobs == 0 ? "No job waits for its first start."
                                      : "None of the jobs below waits for its first start.");
    CloseSection(page);
    return;
  }
  page->Element("p", {{"class", "note"}},
                "Oldest first; a job of a higher priority is tried before older ones.");
  OpenWide(page);
  page->Open("table", {{"class", "cards queue"}});
  DrawTitles({"Job", "Age", "Why it waits"}, page);
  page->Open("tbody");
  for (size_t i = 0; i < std::min(queued.size(), kMostQueuedDrawn); ++i) {
    const v1::Job& job = *queued[i];
    page->Open("tr");
    DrawNameCell(job, page);
    DrawAgeCell(job, view.now_ns, page);
    DrawReasonCell(job, page);
    page->Close();
  }
  page->Close();
  page->Close();
  page->Close();
  if (queued.size() > kMostQueuedDrawn) {
    page->Element(
        "p", {{"class", "note"}},
        CountText(queued.size() - kMostQueuedDrawn, "more job waits.", "more jobs wait."));
  }
  CloseSection(page);
}

void DrawJobs(const ClusterPageView& view, Markup* page) {
  OpenSection("jobs", "Jobs", page);
  if (!view.jobs_error.empty()) {
    DrawAlert("bad", "The jobs are not known: ", view.jobs_error, page);
    CloseSection(page);
    return;
  }
  DrawStateFilters(view, page);
  DrawNamespaceFilters(view, page);
  if (view.jobs.empty()) {
    page->Element("p", {{"class", "note"}}, NoJobsText(view));
    CloseSection(page);
    return;
  }
  OpenWide(page);
  page->Open("table", {{"class", "cards jobs"}});
  DrawTitles({"Job", "State", "Step", "Loss", "Age", "Reason"}, page);
  page->Open("tbody");
  for (const v1::Job& job : view.jobs) DrawJobRow(job, view.now_ns, page);
  page->Close();
  page->Close();
  page->Close();
  if (view.more_jobs > 0) {
    page->Element("p", {{"class", "note"}},
                  CountText(view.more_jobs, "more job is", "more jobs are") +
                      " left out, and counted nowhere on this page; `troupe list` has all.");
  }
  CloseSection(page);
}

}  // namespace troupe
