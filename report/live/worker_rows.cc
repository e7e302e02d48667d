#include "report/live/worker_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/text/count_text.h"
#include "base/text/scaled.h"
#include "plan/job/job_name.h"
#include "report/live/frame.h"
#include "report/live/links.h"
#include "report/live/live_text.h"
#include "report/live/state_mark.h"
#include "report/page.h"
#include "report/text/status_text.h"

namespace troupe {
namespace {

constexpr size_t kMostWordCharacters = 130;  // names of workers, hosts, islands and jobs
constexpr size_t kMostLineCharacters = 500;
constexpr size_t kMostLinesOfWorkerDrawn = 40;
constexpr int kMostJobsOfWorkerDrawn = 20;
constexpr int kMostRanksOfWorkerDrawn = 128;

void DrawSmall(const std::string& text, Markup* page) {
  if (!text.empty()) page->Element("div", {{"class", "small"}}, text);
}

void DrawDevicesCell(const v1::WorkerStatus& worker, Markup* page) {
  page->Open("td");
  page->Text(DeviceCounts(worker));
  DrawSmall(Clipped(DeviceFacts(worker), kMostLineCharacters), page);
  page->Close();
}

void DrawHostCell(const v1::WorkerStatus& worker, Markup* page) {
  page->Open("td");
  page->Text(Clipped(worker.host(), kMostWordCharacters));
  if (worker.pid() != 0) DrawSmall(fmt::format("process {}", worker.pid()), page);
  page->Close();
}

void DrawJobsCell(const v1::WorkerStatus& worker, Markup* page) {
  page->Open("td");
  const int drawn = std::min(worker.jobs_size(), kMostJobsOfWorkerDrawn);
  for (int i = 0; i < drawn; ++i) {
    page->Element("a", {{"href", JobLink(worker.jobs(i))}},
                  Clipped(JobId(worker.jobs(i)), kMostWordCharacters));
  }
  if (drawn < worker.jobs_size())
    DrawSmall(fmt::format("and {} more", worker.jobs_size() - drawn), page);
  page->Close();
}

// The ranks are folded: a worker may have many, and their cores are of interest now and then. The
// id lets the script keep open what a reader has opened.
void DrawRanksOf(const v1::WorkerStatus& worker, Markup* page) {
  const int count = worker.ranks_size(), drawn = std::min(count, kMostRanksOfWorkerDrawn);
  page->Open("details", {{"id", "ranks-of-" + PercentEncoded(worker.name())}});
  page->Element("summary", {}, CountText(count, "rank") + " on cores");
  page->Open("ul");
  for (int i = 0; i < drawn; ++i) {
    const v1::RankCores& rank = worker.ranks(i);
    page->Element("li", {},
                  fmt::format("rank {} of {} on cores {}", rank.rank(),
                              Clipped(rank.job(), kMostWordCharacters), CoreRanges(rank.cores())));
  }
  if (drawn < count) page->Element("li", {}, fmt::format("and {} more", count - drawn));
  page->Close();
  page->Close();
}

void DrawWorkerRow(const v1::WorkerStatus& worker, Markup* page) {
  page->Open("tr");
  page->Open("td", {{"class", "name"}});
  page->Text(Clipped(worker.name(), kMostWordCharacters));
  page->Close();
  page->Open("td");
  DrawWorkerState(worker.state(), page);
  page->Close();
  DrawDevicesCell(worker, page);
  page->Element(
      "td", {{"class", "number"}},
      worker.memory_bytes() == 0 ? "" : Scaled(static_cast<double>(worker.memory_bytes()), "B"));
  page->Element("td", {}, Clipped(worker.island(), kMostWordCharacters));
  DrawHostCell(worker, page);
  DrawJobsCell(worker, page);
  page->Close();
  const std::vector<std::string> lines = Restrictions(worker);
  if (lines.empty() && worker.ranks().empty()) return;
  page->Open("tr", {{"class", "more"}});
  page->Open("td", {{"colspan", "7"}});
  for (size_t i = 0; i < std::min(lines.size(), kMostLinesOfWorkerDrawn); ++i)
    page->Element("p", {}, Clipped(lines[i], kMostLineCharacters));
  if (lines.size() > kMostLinesOfWorkerDrawn) {
    DrawSmall(fmt::format("and {} of `troupe workers`",
                          CountText(lines.size() - kMostLinesOfWorkerDrawn, "more line")),
              page);
  }
  if (!worker.ranks().empty()) DrawRanksOf(worker, page);
  page->Close();
  page->Close();
}

bool StatesIsland(const v1::WorkerStatus& worker) { return !worker.island().empty(); }

void DrawTable(const ClusterPageView& view, Markup* page) {
  OpenWide(page);
  page->Open("table", {{"class", "cards workers"}});
  page->Open("thead");
  page->Open("tr");
  for (const char* title : {"Worker", "State", "Devices", "Memory", "Island", "Host", "Jobs"})
    page->Element("th", {{"scope", "col"}}, title);
  page->Close();
  page->Close();
  page->Open("tbody");
  for (const v1::WorkerStatus& worker : view.workers) DrawWorkerRow(worker, page);
  page->Close();
  page->Close();
  page->Close();
  if (std::ranges::any_of(view.workers, StatesIsland)) {
    page->Element("p", {{"class", "note"}}, kIslandMeaning);
  }
}

}  // namespace

void DrawWorkers(const ClusterPageView& view, Markup* page) {
  OpenSection("workers", "Workers", page);
  if (!view.workers_error.empty()) {
    DrawAlert("bad", "The workers are not known: ", view.workers_error, page);
  } else if (view.workers.empty()) {
    page->Element("p", {{"class", "note"}}, "There are no workers.");
  } else {
    DrawTable(view, page);
  }
  if (view.more_workers > 0) {
    page->Element("p", {{"class", "note"}},
                  CountText(view.more_workers, "more worker is", "more workers are") +
                      " left out; `troupe workers` has all.");
  }
  CloseSection(page);
}

}  // namespace troupe
