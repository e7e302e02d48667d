#include "base/text/utf8.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

std::string Replaced(std::string text) {
  ReplaceIllFormed(text);
  return text;
}

TEST(Utf8, WhatIsWellFormedStaysAsItIs) {
  std::string text =
      "plain, gr\xC3\xB6\xC3\x9F"
      "e, \xE2\x82\xAC, \xF0\x9F\x98\x80, \xF4\x8F\xBF\xBF";
  const std::string before = text;
  EXPECT_EQ(WellFormedPrefix(text), text.size());
  EXPECT_EQ(ReplaceIllFormed(text), 0);
  EXPECT_EQ(text, before);
}

TEST(Utf8, TheFirstAndTheLastOfEachLengthAreWellFormed) {
  for (const std::string& text :
       {std::string(), std::string("\0a\x7f", 3), std::string("\xc2\x80\xdf\xbf"),
        std::string("\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf"),
        std::string("\xf0\x90\x80\x80\xf4\x8f\xbf\xbf")})
    EXPECT_EQ(WellFormedPrefix(text), text.size()) << text;
}

TEST(Utf8, ACharacterHasItsNumber) {
  EXPECT_EQ(CodePoint("a"), 0x61u);
  EXPECT_EQ(CodePoint("\xc3\xa9"), 0xE9u);
  EXPECT_EQ(CodePoint("\xe2\x82\xac"), 0x20ACu);
  EXPECT_EQ(CodePoint("\xf4\x8f\xbf\xbf"), 0x10FFFFu);
}

TEST(Utf8, EverythingElseIsIllFormed) {
  for (const std::string text :
       {"\xff", "\x80", "a\xc2", "\xe2\x82", "\xf0\x9f\x98", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf",
        "\xf0\x8f\xbf\xbf", "\xed\xa0\x80", "\xed\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80",
        "\xe2\x28\xa1"})
    EXPECT_LT(WellFormedPrefix(text), text.size()) << text;
}

TEST(Utf8, EveryMaximalPartBecomesOneReplacementAsInPython) {
  // Each result is that of bytes.decode("utf-8", errors="replace").
  const std::string r = "\xEF\xBF\xBD";
  EXPECT_EQ(Replaced("a\xFFz"), "a" + r + "z");
  EXPECT_EQ(Replaced("\x80\x80"), r + r);
  EXPECT_EQ(Replaced("\xC0\xAF"), r + r);                  // overlong
  EXPECT_EQ(Replaced("\xE0\x80\xAF"), r + r + r);          // overlong
  EXPECT_EQ(Replaced("\xED\xA0\x80"), r + r + r);          // a surrogate
  EXPECT_EQ(Replaced("\xF4\x90\x80\x80"), r + r + r + r);  // above U+10FFFF
  EXPECT_EQ(Replaced("\xE2\x82"), r);                      // truncated at the end
  EXPECT_EQ(Replaced("\xE2\x82x"), r + "x");
  EXPECT_EQ(Replaced("\xF0\x9F\x98"), r);
  EXPECT_EQ(Replaced("\xF0\x9F\x98\xF0\x9F\x98\x80"), r + "\xF0\x9F\x98\x80");
}

TEST(Utf8, IllFormedPartsAreCounted) {
  std::string text = "eight bytes and more \xFF then \xE2\x82 and \xC3";
  EXPECT_EQ(WellFormedPrefix(text), 21u);
  EXPECT_EQ(ReplaceIllFormed(text), 3);
  EXPECT_EQ(WellFormedPrefix(text), text.size());
}

}  // namespace
}  // namespace troupe
