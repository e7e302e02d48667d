#include "data/split_pattern.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "base/check.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> Pieces(std::string_view pattern, std::string_view text) {
  const auto compiled = SplitPattern::Compile(pattern);
  TROUPE_CHECK_OK(compiled.status());
  SplitPattern::Cutter cutter(*compiled);
  std::vector<std::string> pieces;
  while (!text.empty()) {
    const auto bytes = cutter.FirstPiece(text);
    TROUPE_CHECK_OK(bytes.status());
    pieces.emplace_back(text.substr(0, *bytes));
    text.remove_prefix(*bytes);
  }
  return pieces;
}

TEST(SplitPattern, CutsAsGpt2Does) {
  EXPECT_THAT(Pieces(kGpt2Pattern, "We're  at 12:30,\n\n they'LL go"),
              ElementsAre("We", "'re", " ", " at", " 12", ":", "30", ",", "\n\n", " they", "'",
                          "LL", " go"));
  EXPECT_THAT(Pieces(kGpt2Pattern, "x \xC2\xA0 \xE3\x80\x80y"),
              ElementsAre("x", " \xC2\xA0 ", "\xE3\x80\x80", "y"));
}

TEST(SplitPattern, KnowsTheLettersAndNumbersOfUnicode16) {
  // U+31350 is a letter and U+11F50 a digit since Unicode 15.
  EXPECT_THAT(Pieces(kGpt2Pattern, "a\xF0\xB1\x8D\x90 1\xF0\x91\xBD\x90"),
              ElementsAre("a\xF0\xB1\x8D\x90", " 1\xF0\x91\xBD\x90"));
}

TEST(SplitPattern, TheMongolianVowelSeparatorIsNoSpace) {
  EXPECT_THAT(Pieces(R"(\s+|\S+)", "a\xE1\xA0\x8E b"), ElementsAre("a\xE1\xA0\x8E", " ", "b"));
}

TEST(SplitPattern, WhatNoMatchTakesIsAPieceToo) {
  EXPECT_THAT(Pieces(R"(\p{N}{1,3})", "ab12345cd"), ElementsAre("ab", "123", "45", "cd"));
}

TEST(SplitPattern, AMegabyteOfOneKindIsNoTrouble) {
  const std::string llama3 = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|)"
                             R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  for (const char* const unit : {" ", "a", "!", "\n", "\xE2\x80\xA8"}) {
    std::string text;
    while (text.size() < (1 << 20)) text += unit;
    EXPECT_THAT(Pieces(llama3, text), ElementsAre(text)) << unit;
    EXPECT_THAT(Pieces(kGpt2Pattern, text), ElementsAre(text)) << unit;
  }
}

TEST(SplitPattern, RefusesByNameWhatMeansSomethingElseInAnotherEngine) {
  const struct {
    const char* pattern;
    const char* named;
  } cases[] = {
      {"a.b", "\".\" at byte 1"},
      {"^a", "\"^\" at byte 0"},
      {"a$", "\"$\" at byte 1"},
      {R"(\w+)", R"("\w" at byte 0)"},
      {R"(\d)", R"("\d")"},
      {R"(\p{Lu})", R"("\p{Lu}" at byte 0)"},
      {R"([\S])", R"("\S" at byte 1)"},
      {R"([\P{L}])", R"("\P{L}")"},
      {"[a[b]]", "\"[\" at byte 2"},
      {"[a&&b]", "\"&&\" at byte 2"},
      {"[]a]", "\"]\" at byte 1"},
      {"(?<=a)b", "\"(?<\" at byte 0"},
      {"(?i)a", "\"(?i\" at byte 0"},
      {"(*UTF)a", "\"(*\" at byte 0"},
      {"a{2}+", "\"{2}+\" at byte 1"},
      {"a{,3}", "\"{,3}\" at byte 1"},
      {R"(\p)", "\"\\p\""},
      {R"(a\)", "\"\\\" at byte 1"},
      {"[a", "is not closed"},
      {"a*", "matches the empty text"},
      {"(a", "does not compile"},
      {"\xFF", "not UTF-8"},
  };
  for (const auto& bad : cases) {
    const Status status = SplitPattern::Compile(bad.pattern).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << bad.pattern;
    EXPECT_THAT(std::string(Message(status)), HasSubstr(bad.named)) << bad.pattern;
  }
}

}  // namespace
}  // namespace troupe
