#include "report/live/cluster_html.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <vector>

#include "base/worker_state.h"
#include "report/live/device_use.h"
#include "report/live/frame.h"
#include "report/live/job_rows.h"
#include "report/live/live_text.h"
#include "report/live/worker_rows.h"
#include "report/page.h"
#include "report/text/json_text.h"

namespace troupe {
namespace {

constexpr size_t kMostFactCharacters = 60;

// The jobs' states are next to the table of jobs, which has a link for each.
void AddJobFacts(const ClusterPageView& view, TextRows* facts) {
  if (!view.jobs_error.empty() || !view.state_filter.empty()) return;
  const auto count = [&](auto&& is_counted) {
    return fmt::to_string(std::ranges::count_if(view.jobs, is_counted));
  };
  facts->emplace_back("jobs that run", count([](const v1::Job& job) {
                        return !IsEndState(job.state()) && job.state() != v1::JOB_STATE_QUEUED &&
                               job.moving().empty();
                      }));
  const auto moves = [](const v1::Job& job) {
    return !job.moving().empty() && job.state() != v1::JOB_STATE_QUEUED;
  };
  if (std::ranges::any_of(view.jobs, moves)) facts->emplace_back("jobs that move", count(moves));
  facts->emplace_back("jobs that wait", count([](const v1::Job& job) {
                        return job.state() == v1::JOB_STATE_QUEUED;
                      }));
}

// Whether the worker, or each of its devices, is used only where others do not suffice.
bool IsSetAside(const v1::WorkerStatus& worker) {
  const auto& parts = worker.set_aside();
  return std::ranges::any_of(parts, [](const v1::SetAside& part) { return !part.has_device(); }) ||
         (!parts.empty() && parts.size() >= worker.devices_size());
}

// Returns "3 READY, 1 LOST, 1 DRAINING, 2 set aside". Those that are set aside are READY otherwise.
std::string WorkerCounts(const std::vector<v1::WorkerStatus>& workers) {
  std::map<std::string, int, std::greater<>> states;  // READY, LOST, DRAINING
  int set_aside = 0;
  for (const v1::WorkerStatus& worker : workers) {
    const bool is_aside = worker.state() == worker_state::kReady && IsSetAside(worker);
    ++(is_aside ? set_aside : states[worker.state()]);
  }
  std::vector<std::string> counts;
  for (const auto& [state, count] : states)
    counts.push_back(fmt::format("{} {}", count, Clipped(state, kMostFactCharacters)));
  if (set_aside > 0) counts.push_back(fmt::format("{} set aside", set_aside));
  return counts.empty() ? "none" : fmt::format("{}", fmt::join(counts, ", "));
}

void AddWorkerFacts(const ClusterPageView& view, TextRows* facts) {
  facts->emplace_back("workers", WorkerCounts(view.workers));
  const DevicesInUse use = CountDevices(view.workers, view.jobs);
  for (const auto& [kind, devices] : use.by_kind) {
    // A device that seems to be free may be used by a job that the caller may not see.
    facts->emplace_back(
        fmt::format("{} devices", Clipped(kind, kMostFactCharacters)),
        view.sees_all_jobs
            ? fmt::format("{} used, {} free of {}", devices.used, devices.free, devices.total)
            : fmt::format("{} of {} used by jobs that you see", devices.used, devices.total));
  }
  if (use.unknown > 0)
    facts->emplace_back("used, of a kind not known", fmt::to_string(use.unknown));
}

void DrawSummary(const ClusterPageView& view, Markup* page) {
  page->Open("section", {{"id", "summary"}});
  page->Element("h1", {}, "Cluster");
  TextRows facts;
  AddJobFacts(view, &facts);
  if (view.workers_error.empty()) AddWorkerFacts(view, &facts);
  if (!facts.empty()) DrawFacts(facts, page);
  if (!view.sees_all_jobs) {
    page->Element("p", {{"class", "note"}}, "Counts include only what you may see.");
  }
  page->Close();
}

}  // namespace

std::string ClusterHtml(const ClusterPageView& view) {
  const LiveFrame frame = {.title = "Cluster · Troupe",
                           .caller = view.caller,
                           .version = view.version,
                           .now_ns = view.now_ns};
  Markup page;
  OpenLivePage(frame, &page);
  DrawSummary(view, &page);
  DrawQueue(view, &page);
  DrawJobs(view, &page);
  DrawWorkers(view, &page);
  CloseLivePage(frame, &page);
  return page.text();
}

}  // namespace troupe
