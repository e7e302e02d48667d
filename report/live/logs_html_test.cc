#include "report/live/logs_html.h"

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

TEST(LogsHtmlTest, APageIsGolden) {
  ExpectGolden("report/live/golden/logs.html", LogsHtml(ExampleLogs()));
}

TEST(LogsHtmlTest, NoTextBecomesMarkup) {
  for (const std::string& text : HostileTexts()) {
    LogsView view;
    view.caller = view.version = view.error = text;
    FillTexts(text, {"spec", "plan"}, &view.job);
    view.lines = {text, text};
    CheckLivePage(LogsHtml(view), 1);
  }
}

TEST(LogsHtmlTest, EachLineIsOne) {
  LogsView view = ExampleLogs();
  EXPECT_THAT(LogsHtml(view), HasSubstr("<pre class=\"log\" tabindex=\"0\">\nfirst line\n\nlast "
                                        "line\n</pre>"));
  view.lines = {"one\nrank 0: forged"};
  EXPECT_THAT(LogsHtml(view), HasSubstr("\none\\nrank 0: forged\n</pre>"));
}

TEST(LogsHtmlTest, LinesAndTheirNumberAreBounded) {
  LogsView view = ExampleLogs();
  view.lines.assign(500, std::string(3'000, 'x'));
  const std::string html = LogsHtml(view);
  EXPECT_LT(html.size(), 500u * 2100);
  EXPECT_THAT(html, HasSubstr("xxx… (1000 more characters)\n"));
  EXPECT_THAT(html, HasSubstr("17 older lines are left out"));
}

TEST(LogsHtmlTest, AllRanksAndEachHaveALink) {
  LogsView view = ExampleLogs();
  EXPECT_THAT(LogsHtml(view), HasSubstr("<a href=\"/jobs/lab.trains/logs\">all ranks</a>"));
  EXPECT_THAT(LogsHtml(view), HasSubstr("<a href=\"/jobs/lab.trains/logs?rank=0\">0</a>"));
  EXPECT_THAT(LogsHtml(view), HasSubstr("<a href=\"/jobs/lab.trains/logs?rank=1\" "
                                        "aria-current=\"page\">1</a>"));
  EXPECT_THAT(LogsHtml(view), HasSubstr("<h1>Log of rank 1 of lab.trains "));
  view.rank.reset();
  EXPECT_THAT(LogsHtml(view), HasSubstr("<a href=\"/jobs/lab.trains/logs\" "
                                        "aria-current=\"page\">all ranks</a>"));
}

TEST(LogsHtmlTest, NoLinesHaveAReason) {
  LogsView view = ExampleLogs();
  view.lines.clear();
  EXPECT_THAT(LogsHtml(view), HasSubstr("The log has no lines."));
  view.error = "FAILED_PRECONDITION: no worker that ran it is connected";
  EXPECT_THAT(LogsHtml(view),
              HasSubstr("<b>The log is not shown: </b>\n<span>FAILED_PRECONDITION: no worker"));
  EXPECT_THAT(LogsHtml(view), Not(HasSubstr("The log has no lines.")));
}

TEST(LogsHtmlTest, AnErrorAfterSomeLinesMakesTheLogIncomplete) {
  LogsView view = ExampleLogs();
  EXPECT_THAT(LogsHtml(view), HasSubstr("17 older lines are left out;"));
  view.error = "DEADLINE_EXCEEDED: a worker does not answer";
  const std::string html = LogsHtml(view);
  EXPECT_THAT(html, HasSubstr("<b>The log is incomplete: </b>\n<span>DEADLINE_EXCEEDED: a worker"));
  EXPECT_THAT(html, Not(HasSubstr("is not shown")));
  EXPECT_THAT(html, HasSubstr("17 lines are left out;")) << "newer ones are missing too";
}

TEST(LogsHtmlTest, OnlyTheCompletePageOfAJobThatHasEndedIsFinal) {
  LogsView view = ExampleLogs();
  EXPECT_THAT(LogsHtml(view), HasSubstr("<main data-final=\"false\">"));
  view.job.set_state(v1::JOB_STATE_FAILED);
  EXPECT_THAT(LogsHtml(view), HasSubstr("<main data-final=\"true\">"));
  view.error = "UNAVAILABLE: busy";
  EXPECT_THAT(LogsHtml(view), HasSubstr("<main data-final=\"false\">"));
}

}  // namespace
}  // namespace troupe
