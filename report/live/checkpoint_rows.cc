#include "report/live/checkpoint_rows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/clock.h"
#include "base/text/scaled.h"
#include "report/live/frame.h"
#include "report/live/live_text.h"
#include "report/live/state_mark.h"
#include "report/page.h"
#include "report/text/duration_text.h"

namespace troupe {
namespace {

constexpr size_t kMostCheckpointsDrawn = 100;
constexpr size_t kMostPathCharacters = 1000;
constexpr size_t kMostDoubtCharacters = 500;

std::string MarksOf(const v1::CheckpointRecord& checkpoint) {
  std::vector<std::string> marks;
  if (checkpoint.verified()) marks.emplace_back("verified");
  if (checkpoint.pinned()) marks.emplace_back("pinned");
  if (!checkpoint.doubted_by().empty()) marks.emplace_back("doubted");
  return fmt::format("{}", fmt::join(marks, ", "));
}

void DrawCheckpointRow(const v1::CheckpointRecord& checkpoint, int64_t now_ns, Markup* page) {
  page->Open("tr");
  page->Element("td", {{"class", "number"}}, fmt::to_string(checkpoint.step()));
  page->Open("td");
  DrawCheckpointState(checkpoint.state(), page);
  page->Close();
  page->Element("td", {{"class", "number"}}, Scaled(static_cast<double>(checkpoint.bytes()), "B"));
  page->Open("td", {{"class", "number"}});
  if (checkpoint.commit_wall_time_ns() != 0) {
    page->Element(
        "span",
        {{"title", "committed " + UtcText(checkpoint.commit_wall_time_ns() / 1'000'000'000)}},
        AgeText(checkpoint.commit_wall_time_ns(), now_ns));
  }
  page->Close();
  page->Element("td", {}, MarksOf(checkpoint));
  page->Open("td", {{"class", "path"}});
  page->Text(Clipped(checkpoint.path(), kMostPathCharacters));
  if (!checkpoint.reason().empty())
    page->Element("div", {{"class", "suspect"}},
                  Clipped(checkpoint.reason(), kMostDoubtCharacters));
  if (!checkpoint.doubted_by().empty()) {
    page->Element(
        "div", {{"class", "suspect"}},
        Clipped(fmt::format("doubted by {}: {}", checkpoint.doubted_by(), checkpoint.doubt()),
                kMostDoubtCharacters));
  }
  page->Close();
  page->Close();
}

void DrawCheckpointTable(const std::vector<v1::CheckpointRecord>& checkpoints, int64_t now_ns,
                         Markup* page) {
  OpenWide(page);
  page->Open("table", {{"class", "cards checkpoints"}});
  page->Open("thead");
  page->Open("tr");
  for (const char* title : {"Step", "State", "Size", "Age", "Notes", "Path"})
    page->Element("th", {{"scope", "col"}}, title);
  page->Close();
  page->Close();
  page->Open("tbody");
  const size_t drawn = std::min(checkpoints.size(), kMostCheckpointsDrawn);
  for (size_t i = 1; i <= drawn; ++i)
    DrawCheckpointRow(checkpoints[checkpoints.size() - i], now_ns, page);
  page->Close();
  page->Close();
  page->Close();
}

}  // namespace

void DrawCheckpoints(const std::vector<v1::CheckpointRecord>& checkpoints, const std::string& error,
                     int64_t now_ns, Markup* page) {
  OpenSection("checkpoints", "Checkpoints", page);
  if (!error.empty()) {
    DrawAlert("bad", "The checkpoints are not known: ", error, page);
  } else if (checkpoints.empty()) {
    page->Element("p", {{"class", "note"}}, "There are no checkpoints.");
  } else {
    DrawCheckpointTable(checkpoints, now_ns, page);
  }
  if (checkpoints.size() > kMostCheckpointsDrawn) {
    page->Element(
        "p", {{"class", "note"}},
        fmt::format("{} older checkpoints are left out; `troupe checkpoints list` has all.",
                    checkpoints.size() - kMostCheckpointsDrawn));
  }
  CloseSection(page);
}

}  // namespace troupe
