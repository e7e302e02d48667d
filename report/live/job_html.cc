#include "report/live/job_html.h"

#include <utility>

#include "report/live/checkpoint_rows.h"
#include "report/live/frame.h"
#include "report/live/job_headline.h"
#include "report/live/links.h"
#include "report/live/rank_rows.h"
#include "report/page.h"
#include "report/text/json_text.h"

namespace troupe {
namespace {

// Links to the sections of DrawReport and of this page.
void DrawContents(const v1::Job& job, Markup* page) {
  constexpr std::pair<const char*, const char*> kParts[] = {
      {"#steps", "Steps"},   {"#step-time", "Time"},  {"#pipeline", "Pipeline"},
      {"#layout", "Layout"}, {"#stages", "Stages"},   {"#memory", "Memory"},
      {"#events", "Events"}, {"#receipt", "Receipt"}, {"#checkpoints", "Checkpoints"},
      {"#ranks", "Ranks"}};
  page->Open("nav", {{"class", "filters"}, {"aria-label", "parts of this page"}});
  for (const auto& [link, text] : kParts) page->Element("a", {{"href", link}}, text);
  page->Element("a", {{"href", LogsLink(job.name(), std::nullopt)}}, "Logs");
  page->Close();
}

void DrawMissingParts(const JobView& view, Markup* page) {
  const std::pair<const char*, const std::string*> parts[] = {
      {"The steps are incomplete: ", &view.steps_error},
      {"The receipt is not known: ", &view.receipt_error},
      {"The schedule as it runs is not shown: ", &view.trace_error}};
  for (const auto& [subject, error] : parts)
    if (!error->empty()) DrawAlert("warn", subject, *error, page);
}

// Whether nothing of the page can change any more. What is missing now may be there later.
bool IsFinalView(const JobView& view) {
  return IsEndState(view.report.job.state()) && view.checkpoints_error.empty() &&
         view.steps_error.empty() && view.receipt_error.empty();
}

}  // namespace

std::string JobHtml(const JobView& view) {
  const v1::Job& job = view.report.job;
  const LiveFrame frame = {.title = TitleOf(job),
                           .caller = view.caller,
                           .version = view.version,
                           .now_ns = view.now_ns,
                           .is_final = IsFinalView(view)};
  Markup page;
  OpenLivePage(frame, &page);
  page.Open("section", {{"id", "headline"}});
  DrawJobHeading("", job, &page);
  page.Element("p", {{"class", "subtitle"}}, SubmissionText(job));
  DrawJobProgress(job, &page);
  DrawJobReasons(job, &page);
  DrawMissingParts(view, &page);
  DrawContents(job, &page);
  page.Close();
  DrawReport(view.report, &page);
  DrawCheckpoints(view.checkpoints, view.checkpoints_error, view.now_ns, &page);
  DrawRankTable(job, &page);
  CloseLivePage(frame, &page);
  return page.text();
}

}  // namespace troupe
