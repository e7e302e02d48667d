#include "report/live/error_html.h"

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

TEST(ErrorHtmlTest, APageIsGolden) {
  ExpectGolden("report/live/golden/error.html",
               ErrorHtml(404, "Not found", "There is no job \"jobs/x\"."));
}

TEST(ErrorHtmlTest, NoTextBecomesMarkup) {
  for (const std::string& text : HostileTexts()) {
    CheckLivePage(ErrorHtml(404, text, text), 0);
    CheckLivePage(ErrorHtml(503, text, text), 1);
  }
}

TEST(ErrorHtmlTest, OnlyAFaultThatMayEndIsAskedForAgain) {
  EXPECT_THAT(ErrorHtml(401, "Unauthorized", ""), Not(HasSubstr("<script")));
  EXPECT_THAT(ErrorHtml(503, "Busy", ""), HasSubstr("<main data-final=\"false\">"));
}

}  // namespace
}  // namespace troupe
