#include "report/live/logs_html.h"

#include <fmt/format.h>

#include "base/text/count_text.h"
#include "base/text/printable.h"
#include "report/live/frame.h"
#include "report/live/job_headline.h"
#include "report/live/links.h"
#include "report/live/live_text.h"
#include "report/live/rank_rows.h"
#include "report/text/json_text.h"

namespace troupe {
namespace {

constexpr size_t kMostLogLineCharacters = 2000;

void DrawLog(const LogsView& view, Markup* page) {
  page->Open("section", {{"id", "log"}});
  if (!view.error.empty()) {
    DrawAlert("bad",
              view.lines.empty() ? "The log is not shown: " : "The log is incomplete: ", view.error,
              page);
  }
  if (view.more_lines > 0) {
    // After an error newer lines are missing too.
    page->Element("p", {{"class", "note"}},
                  CountText(view.more_lines, view.error.empty() ? "older line is" : "line is",
                            view.error.empty() ? "older lines are" : "lines are") +
                      " left out; `troupe logs` has all.");
  }
  if (view.lines.empty()) {
    if (view.error.empty()) page->Element("p", {{"class", "note"}}, "The log has no lines.");
    page->Close();
    return;
  }
  page->Open("pre", {{"class", "log"}, {"tabindex", "0"}});
  page->Constant("\n");  // a newline at the start is no part of the text
  for (const std::string& line : view.lines) {
    // A newline within a line would look like another line.
    page->Text(Clipped(PrintableLine(line), kMostLogLineCharacters));
    page->Constant("\n");
  }
  page->Close();
  page->Close();
}

}  // namespace

std::string LogsHtml(const LogsView& view) {
  const LiveFrame frame = {.title = "Logs: " + TitleOf(view.job),
                           .caller = view.caller,
                           .version = view.version,
                           .now_ns = view.now_ns,
                           .is_final = IsEndState(view.job.state()) && view.error.empty()};
  Markup page;
  OpenLivePage(frame, &page);
  page.Open("section", {{"id", "headline"}});
  DrawJobHeading(view.rank ? fmt::format("Log of rank {} of ", *view.rank) : "Logs of ", view.job,
                 &page);
  page.Open("p", {{"class", "subtitle"}});
  page.Element("a", {{"href", JobLink(view.job.name())}}, "to the job");
  page.Close();
  DrawLogLinks(view.job, view.rank, &page);
  page.Close();
  DrawLog(view, &page);
  CloseLivePage(frame, &page);
  return page.text();
}

}  // namespace troupe
