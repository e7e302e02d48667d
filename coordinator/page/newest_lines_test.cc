#include "coordinator/page/newest_lines.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace troupe {
namespace {

using ::testing::ElementsAre;

std::string LineAt(int second, const std::string& text) {
  return fmt::format("2026-11-24T06:37:{:02}.000Z {}", second, text);
}

TEST(NewestLines, OfOneRankTheLastOnesStayAsTheyCame) {
  NewestLines lines(2, LinesOrder::kArrival);
  for (const std::string& line : {LineAt(3, "a"), LineAt(2, "b"), LineAt(1, "c")}) lines.Add(line);
  EXPECT_THAT(lines.Take(), ElementsAre(LineAt(2, "b"), LineAt(1, "c")));
  EXPECT_EQ(lines.left_out(), 1u);
}

TEST(NewestLines, OfSeveralRanksTheNewestStayInTheOrderOfTheirTimes) {
  NewestLines lines(4, LinesOrder::kTime);
  for (const std::string& line :
       {LineAt(1, "rank 0"), LineAt(5, "rank 0"), std::string("  of the stack"),
        std::string("… 120 bytes are missing here"), LineAt(2, "rank 1"), LineAt(4, "rank 1")}) {
    lines.Add(line);
  }
  EXPECT_THAT(lines.Take(), ElementsAre(LineAt(2, "rank 1"), LineAt(4, "rank 1"),
                                        LineAt(5, "rank 0"), "  of the stack"));
  EXPECT_EQ(lines.left_out(), 2u);
}

TEST(NewestLines, ManyLinesAreLeftOutAsTheyCome) {
  NewestLines lines(500, LinesOrder::kArrival);
  for (int i = 0; i < 10'000; ++i) lines.Add(std::to_string(i));
  const std::vector<std::string> newest = lines.Take();
  ASSERT_EQ(newest.size(), 500u);
  EXPECT_EQ(newest.front(), "9500");
  EXPECT_EQ(newest.back(), "9999");
  EXPECT_EQ(lines.left_out(), 9500u);
}

TEST(NewestLines, ALongLineIsCutBetweenTwoCharacters) {
  NewestLines lines(1, LinesOrder::kArrival);
  lines.Add("x" + std::string(2 * NewestLines::kMostLineBytes, '\xc3'));
  std::string text = "x";
  while (text.size() < 2 * NewestLines::kMostLineBytes) text += "é";
  lines.Add(text);
  const std::string cut = lines.Take().front();
  EXPECT_LE(cut.size(), NewestLines::kMostLineBytes + 4);
  EXPECT_TRUE(cut.ends_with("é …")) << cut.substr(cut.size() - 8);
}

}  // namespace
}  // namespace troupe
