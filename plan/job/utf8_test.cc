#include "plan/job/utf8.h"

#include <gtest/gtest.h>

#include <string>

namespace troupe {
namespace {

TEST(Utf8, AcceptsTheFirstAndTheLastOfEachLength) {
  for (const std::string& text :
       {std::string(), std::string("\0a\x7f", 3), std::string("\xc2\x80\xdf\xbf"),
        std::string("\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf"),
        std::string("\xf0\x90\x80\x80\xf4\x8f\xbf\xbf"), std::string("troupe … ñ 中")})
    EXPECT_TRUE(IsUtf8(text)) << text;
}

TEST(Utf8, RefusesEverythingElse) {
  for (const char* const text :
       {"\xff", "\x80", "a\xc2", "\xe2\x82", "\xf0\x9f\x98", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf",
        "\xf0\x8f\xbf\xbf", "\xed\xa0\x80", "\xed\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80",
        "\xe2\x28\xa1"})
    EXPECT_FALSE(IsUtf8(text)) << text;
}

}  // namespace
}  // namespace troupe
