#include "report/live/job_html.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/golden/golden_file.h"
#include "report/live/live_views_test.h"
#include "report/live/page_tags_test.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(JobHtmlTest, APageIsGolden) {
  ExpectGolden("report/live/golden/job.html", JobHtml(ExampleJob()));
}

TEST(JobHtmlTest, APageHasNoScriptStyleOrAddressOfItsOwn) {
  CheckLivePage(JobHtml(ExampleJob()), 1);
  CheckLivePage(JobHtml({}), 1);
}

TEST(JobHtmlTest, NoTextBecomesMarkup) {
  for (const std::string& text : HostileTexts()) {
    JobView view;
    view.caller = view.version = text;
    view.checkpoints_error = view.steps_error = view.receipt_error = view.trace_error = text;
    FillTexts(text, {"spec", "plan"}, &view.report.job);
    FillTexts(text, {}, &view.report.events.emplace_back());
    view.report.receipt.emplace().add_suspect(text);
    view.report.receipt_rows = {{text, text}};
    CheckLivePage(JobHtml(view), 1);
    view.checkpoints_error.clear();
    FillTexts(text, {}, &view.checkpoints.emplace_back());
    CheckLivePage(JobHtml(view), 1);
  }
}

TEST(JobHtmlTest, ReasonsAreAboveTheReport) {
  JobView view = ExampleJob();
  v1::Job& job = view.report.job;
  job.set_waiting_for("8 ranks need 8 devices; 2 are free\nline 2");
  job.set_moving("leaves worker-1");
  const std::string html = JobHtml(view);
  const size_t report = html.find("<section id=\"summary\">");
  ASSERT_NE(report, std::string::npos);
  for (const char* text :
       {"<b>Waits: </b>\n<span>8 ranks need 8 devices; 2 are free\nline 2</span>",
        "<b>Moves: </b>\n<span>leaves worker-1</span>",
        "<b>Last failure: </b>\n<span>RANK_CRASHED of rank 1 on worker-1, signal 9, in F0.1: "
        "killed</span>"}) {
    const size_t found = html.find(text);
    ASSERT_NE(found, std::string::npos) << text;
    EXPECT_LT(found, report);
  }
  EXPECT_THAT(html, HasSubstr("<title>MOVING 25% lab.trains · Troupe</title>"));
}

TEST(JobHtmlTest, AFailureThatQuotesTheLastOneIsStatedOnce) {
  JobView view = ExampleJob();
  view.report.job.set_state(v1::JOB_STATE_FAILED);
  *view.report.job.mutable_failure() = FromText<v1::Failure>(
      "cause: 'RESTART_BUDGET' message: '5 restarts; the last one: RANK_CRASHED: killed' rank: -1");
  const std::string html = JobHtml(view);
  EXPECT_THAT(html, HasSubstr("<p class=\"alert bad\"><b>Failure: </b>\n<span>RESTART_BUDGET: 5"));
  EXPECT_THAT(html, Not(HasSubstr("Last failure")));
}

TEST(JobHtmlTest, WhatIsNotKnownIsStatedWithTheReason) {
  JobView view = ExampleJob();
  view.steps_error = "DEADLINE_EXCEEDED: a";
  view.receipt_error = "UNAVAILABLE: b";
  view.trace_error = "FAILED_PRECONDITION: c";
  view.checkpoints_error = "INTERNAL: d";
  const std::string html = JobHtml(view);
  EXPECT_THAT(html, HasSubstr("<b>The steps are incomplete: </b>\n<span>DEADLINE_EXCEEDED: a"));
  EXPECT_THAT(html, HasSubstr("<b>The receipt is not known: </b>\n<span>UNAVAILABLE: b"));
  EXPECT_THAT(html, HasSubstr("as it runs is not shown: </b>\n<span>FAILED_PRECONDITION: c"));
  EXPECT_THAT(html, HasSubstr("<b>The checkpoints are not known: </b>\n<span>INTERNAL: d"));
}

TEST(JobHtmlTest, TheNewestCheckpointIsFirst) {
  const std::string html = JobHtml(ExampleJob());
  const size_t newest = html.find("/data/lab.trains/2"), oldest = html.find("/data/lab.trains/1");
  ASSERT_NE(newest, std::string::npos);
  EXPECT_LT(newest, oldest);
  EXPECT_THAT(html, HasSubstr("<td>verified, pinned</td>"));
  EXPECT_THAT(html, HasSubstr("<span class=\"state bad\">QUARANTINED</span>"));
  EXPECT_THAT(html, HasSubstr("<div class=\"suspect\">block 7 differs</div>"));
  EXPECT_THAT(html, HasSubstr(">7 min</span>"));
}

TEST(JobHtmlTest, OnlyThePageOfAJobThatHasEndedIsFinal) {
  JobView view = ExampleJob();
  EXPECT_THAT(JobHtml(view), HasSubstr("<main data-final=\"false\">"));
  for (const v1::JobState state :
       {v1::JOB_STATE_SUCCEEDED, v1::JOB_STATE_FAILED, v1::JOB_STATE_CANCELLED}) {
    view.report.job.set_state(state);
    EXPECT_THAT(JobHtml(view), HasSubstr("<main data-final=\"true\">"));
  }
}

TEST(JobHtmlTest, APageWithoutAPartIsNotFinal) {
  for (std::string JobView::*const error :
       {&JobView::checkpoints_error, &JobView::steps_error, &JobView::receipt_error}) {
    JobView view = ExampleJob();
    view.report.job.set_state(v1::JOB_STATE_SUCCEEDED);
    view.*error = "UNAVAILABLE: busy";
    EXPECT_THAT(JobHtml(view), HasSubstr("<main data-final=\"false\">"));
  }
}

TEST(JobHtmlTest, RanksLinkToTheirLogs) {
  const std::string html = JobHtml(ExampleJob());
  EXPECT_THAT(html, HasSubstr("<a href=\"/jobs/lab.trains/logs?rank=1\">log</a>"));
  EXPECT_THAT(html, HasSubstr("<a href=\"/jobs/lab.trains/logs\">log of all ranks</a>"));
  EXPECT_THAT(html, HasSubstr("<td>pipe 1</td>"));
  EXPECT_THAT(html, Not(HasSubstr("<details id=\"rank-table\">")));
}

TEST(JobHtmlTest, TheTableOfManyRanksIsFoldedAndSmall) {
  JobView view = ExampleJob();
  const size_t before = JobHtml(view).size();
  for (int rank = 2; rank < 64; ++rank) {
    v1::RankStatus& status = *view.report.job.add_ranks();
    status.set_rank(rank);
    status.set_worker(std::string(10'000, '"'));
  }
  std::string html = JobHtml(view);
  EXPECT_THAT(html, HasSubstr("<details id=\"rank-table\"><summary>64 ranks</summary>"));
  EXPECT_LT(html.size() - before, 62u * 1200);
  for (int rank = 64; rank < 600; ++rank) view.report.job.add_ranks()->set_rank(rank);
  html = JobHtml(view);
  EXPECT_THAT(html, HasSubstr("88 more ranks are left out."));
}

}  // namespace
}  // namespace troupe
