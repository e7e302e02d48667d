#include "report/live/job_headline.h"

#include <fmt/format.h>

#include "plan/job/job_name.h"
#include "report/live/frame.h"
#include "report/live/live_text.h"
#include "report/live/state_mark.h"
#include "report/text/json_text.h"
#include "report/text/status_text.h"

namespace troupe {
namespace {

constexpr size_t kMostTitleCharacters = 200;
constexpr size_t kMostAlertCharacters = 4000;

// Whether the text of `failure` has cause and message of `last` already. The failure of a job whose
// restarts are used up quotes the last one.
bool QuotesLast(const v1::Failure& failure, const v1::Failure& last) {
  const std::string text = FailureLine(failure);
  return text.find(last.cause()) != std::string::npos &&
         text.find(last.message()) != std::string::npos;
}

}  // namespace

std::string TitleOf(const v1::Job& job) {
  const bool is_counted = !IsEndState(job.state()) && job.steps() > 0;
  const std::string done = is_counted
                               ? fmt::format(" {:.0f}%", 100.0 * static_cast<double>(job.step()) /
                                                             static_cast<double>(job.steps()))
                               : "";
  return fmt::format("{}{} {} · Troupe", StateText(job), done,
                     Clipped(JobId(job.name()), kMostTitleCharacters));
}

void DrawJobHeading(const std::string& prefix, const v1::Job& job, Markup* page) {
  page->Open("h1");
  page->Text(prefix + Clipped(JobId(job.name()), kMostTitleCharacters) + " ");
  DrawJobState(job, page);
  page->Close();
}

void DrawJobProgress(const v1::Job& job, Markup* page) {
  if (job.steps() <= 0) return;
  page->Element("progress",
                {{"class", "wide-progress"},
                 {"aria-label", fmt::format("step {} of {}", job.step(), job.steps())},
                 {"max", fmt::to_string(job.steps())},
                 {"value", fmt::to_string(job.step())}},
                "");
}

void DrawJobReasons(const v1::Job& job, Markup* page) {
  const auto draw = [page](const char* kind, const char* subject, const std::string& text) {
    DrawAlert(kind, subject, Clipped(text, kMostAlertCharacters), page);
  };
  if (job.has_failure()) draw("bad", "Failure: ", FailureLine(job.failure()));
  if (!job.waiting_for().empty()) draw("warn", "Waits: ", job.waiting_for());
  if (!job.moving().empty()) draw("warn", "Moves: ", job.moving());
  if (job.has_last_failure() &&
      !(job.has_failure() && QuotesLast(job.failure(), job.last_failure())))
    draw("warn", "Last failure: ", FailureLine(job.last_failure()));
}

}  // namespace troupe
