#include "report/live/assets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "report/page.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr auto kMostScriptLines = 200;

TEST(AssetsTest, TheStyleIsThatOfTheReportAndMore) {
  const std::string style(StyleSheet());
  EXPECT_THAT(style, StartsWith(PageStyle()));
  EXPECT_THAT(style, HasSubstr(".live"));
  for (const char* part : {"url(", "@import", "http", "@font-face"})
    EXPECT_THAT(style, Not(HasSubstr(part))) << "a page loads nothing from elsewhere";
}

TEST(AssetsTest, TheScriptIsSmallAndMakesNothingOfText) {
  const std::string script(PageScript());
  EXPECT_LT(std::ranges::count(script, '\n'), kMostScriptLines);
  EXPECT_THAT(script, HasSubstr("If-None-Match"));
  for (const char* part : {"innerHTML", "insertAdjacentHTML", "document.write", "eval(",
                           "new Function", "http", "import"})
    EXPECT_THAT(script, Not(HasSubstr(part)));
}

TEST(AssetsTest, TheIconIsADrawing) {
  EXPECT_THAT(std::string(PageIcon()), StartsWith("<svg "));
  EXPECT_THAT(std::string(PageIcon()), Not(HasSubstr("script")));
}

}  // namespace
}  // namespace troupe
