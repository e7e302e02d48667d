#include "report/live/rank_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/text/count_text.h"
#include "report/live/frame.h"
#include "report/live/links.h"
#include "report/live/live_text.h"
#include "report/page.h"
#include "report/text/status_text.h"

namespace troupe {
namespace {

constexpr int kMostRankRowsDrawn = 512;
constexpr int kMostRankRowsUnfolded = 16;
constexpr size_t kMostPlaceCharacters = 130;

void DrawRankRow(const v1::Job& job, const v1::RankStatus& rank, Markup* page) {
  page->Open("tr");
  page->Element("td", {{"class", "number"}}, fmt::to_string(rank.rank()));
  page->Element("td", {}, Clipped(rank.worker(), kMostPlaceCharacters));
  page->Element("td", {{"class", "number"}}, fmt::to_string(rank.device()));
  page->Element("td", {{"class", "number"}}, rank.pid() == 0 ? "" : fmt::to_string(rank.pid()));
  page->Element("td", {}, CoordinatesText(job.layout(), rank.coordinates()));
  page->Element("td", {}, Clipped(CoreRanges(rank.cores()), kMostPlaceCharacters));
  page->Open("td");
  page->Element("a", {{"href", LogsLink(job.name(), rank.rank())}}, "log");
  page->Close();
  page->Close();
}

void DrawRankRows(const v1::Job& job, int drawn, Markup* page) {
  OpenWide(page);
  page->Open("table", {{"class", "cards ranks-of-job"}});
  page->Open("thead");
  page->Open("tr");
  for (const char* title : {"Rank", "Worker", "Device", "Process", "Place", "Cores", "Log"})
    page->Element("th", {{"scope", "col"}}, title);
  page->Close();
  page->Close();
  page->Open("tbody");
  for (int i = 0; i < drawn; ++i) DrawRankRow(job, job.ranks(i), page);
  page->Close();
  page->Close();
  page->Close();
}

void DrawLeftOutRanks(int count, Markup* page) {
  if (count == 0) return;
  page->Element("p", {{"class", "note"}},
                CountText(count, "more rank is", "more ranks are") + " left out.");
}

}  // namespace

void DrawRankTable(const v1::Job& job, Markup* page) {
  OpenSection("ranks", "Ranks", page);
  const int count = job.ranks_size(), drawn = std::min(count, kMostRankRowsDrawn);
  if (count == 0) {
    page->Element("p", {{"class", "note"}}, "The job has no ranks yet.");
    CloseSection(page);
    return;
  }
  page->Open("p");
  page->Element("a", {{"href", LogsLink(job.name(), std::nullopt)}}, "log of all ranks");
  page->Close();
  if (count > kMostRankRowsUnfolded) {
    page->Open("details", {{"id", "rank-table"}});
    page->Element("summary", {}, fmt::format("{} ranks", count));
    DrawRankRows(job, drawn, page);
    page->Close();
  } else {
    DrawRankRows(job, drawn, page);
  }
  DrawLeftOutRanks(count - drawn, page);
  CloseSection(page);
}

void DrawLogLinks(const v1::Job& job, std::optional<int> chosen, Markup* page) {
  const int drawn = std::min(job.ranks_size(), kMostRankRowsDrawn);
  page->Open("nav", {{"class", "filters"}, {"aria-label", "logs"}});
  const auto draw = [&](const std::string& text, std::optional<int> rank) {
    Markup::Attributes attributes = {{"href", LogsLink(job.name(), rank)}};
    if (rank == chosen) attributes.push_back({"aria-current", "page"});
    page->Element("a", attributes, text);
  };
  draw("all ranks", std::nullopt);
  for (int i = 0; i < drawn; ++i) draw(fmt::to_string(job.ranks(i).rank()), job.ranks(i).rank());
  page->Close();
  DrawLeftOutRanks(job.ranks_size() - drawn, page);
}

}  // namespace troupe
