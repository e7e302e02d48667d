#include "cli/output/log_lines.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <utility>

namespace troupe {
namespace {

// 2026-11-24T06:37:13Z.
constexpr int64_t kTime = int64_t{1'795'502'233} * 1000;

std::vector<std::string> Texts(const std::vector<LogLine>& log) {
  std::vector<std::string> texts;
  for (const LogLine& line : log) texts.push_back(line.text);
  return texts;
}

std::vector<LogLine> Log(const std::vector<std::vector<std::string>>& answers) {
  std::vector<LogLine> log;
  for (const auto& lines : answers) {
    for (LogLine& line : WithTimes(lines, log.empty() ? 0 : log.back().time_ms))
      log.push_back(std::move(line));
  }
  return log;
}

struct Selection {
  std::vector<std::string> texts;
  int64_t left_out = 0;
};

Selection Select(const std::vector<LogLine>& log, const LogSelection& selection,
                 LogOrder order = LogOrder::kTime) {
  SelectedLogLines selected(selection, order);
  for (const LogLine& line : log) selected.Add(line);
  const std::vector<LogLine> lines = selected.Take();
  return {Texts(lines), selected.left_out()};
}

// The new lines of a read.
std::vector<std::string> NewOf(const std::vector<std::string>& read, SeenLogLines* seen,
                               LogReadEnd end = LogReadEnd::kComplete) {
  std::vector<std::string> lines;
  for (const std::string& line : read) {
    if (seen->IsNew(line)) lines.push_back(line);
  }
  seen->EndRead(end);
  return lines;
}

using Lines = std::vector<std::string>;

TEST(LogLinesTest, ARecordBeginsWithItsTime) {
  EXPECT_EQ(LogTime("2026-11-24T06:37:13.180Z I rank job=a rank=0 epoch=1 x"), kTime + 180);
  EXPECT_EQ(LogTime("2026-11-24T06:37:13.180 I rank x"), kTime + 180) << "an earlier version";
  EXPECT_EQ(LogTime("1970-01-01T00:00:01.002Z I rank x"), 1002);
  for (const char* line :
       {"", "…", "2026-11-24", "2026-11-24T06:37:13.180", "2026-11-24T06:37:13.180Z",
        "2026-11-24T06:37:13.180Zx", "2026-13-24T06:37:13.180Z I", "2026-02-30T06:37:13.180Z I",
        "2026-11-24T24:37:13.180Z I", "2026-11-24T06:60:13.180Z I", "2026-11-24 06:37:13.180Z I",
        "2026-11-2aT06:37:13.180Z I", "at 2026-11-24T06:37:13.180Z I"}) {
    EXPECT_EQ(LogTime(line), std::nullopt) << line;
  }
}

TEST(LogLinesTest, RanksAreInTheOrderOfTimeAndTheirTracesStayWithThem) {
  const std::vector<LogLine> log =
      Log({{"2026-11-24T06:37:13.100Z I rank=0 first", "2026-11-24T06:37:13.300Z E rank=0 third",
            "  at frame 1", "  at frame 2", "2026-11-24T06:37:13.200Z I rank=1 second"},
           {"2026-11-24T06:37:13.250Z I rank=2 between"}});
  EXPECT_EQ(
      Select(log, {}).texts,
      (std::vector<std::string>{
          "2026-11-24T06:37:13.100Z I rank=0 first", "2026-11-24T06:37:13.200Z I rank=1 second",
          "2026-11-24T06:37:13.250Z I rank=2 between", "2026-11-24T06:37:13.300Z E rank=0 third",
          "  at frame 1", "  at frame 2"}));
}

TEST(LogLinesTest, AMarkOfMissingBytesBeginsItsRank) {
  const std::vector<LogLine> log =
      Log({{"… 7 bytes are missing here", "2026-11-24T06:37:13.100Z I rank=0 first",
            "2026-11-24T06:37:13.300Z I rank=0 third", "… 9 bytes are missing here",
            "2026-11-24T06:37:13.200Z I rank=1 second"}});
  EXPECT_EQ(Select(log, {}).texts,
            (std::vector<std::string>{
                "… 7 bytes are missing here", "2026-11-24T06:37:13.100Z I rank=0 first",
                "… 9 bytes are missing here", "2026-11-24T06:37:13.200Z I rank=1 second",
                "2026-11-24T06:37:13.300Z I rank=0 third"}));
}

TEST(LogLinesTest, ALineWithoutATimeHasTheNearestOneOfItsAnswer) {
  const std::vector<LogLine> log = Log({{"before all"},
                                        {"2026-11-24T06:37:13.100Z I x"},
                                        {"after"},
                                        {"start", "2026-11-24T06:37:13.300Z I x"}});
  ASSERT_EQ(log.size(), 5u);
  EXPECT_EQ(log[0].time_ms, 0);
  EXPECT_EQ(log[2].time_ms, kTime + 100);
  EXPECT_EQ(log[3].time_ms, kTime + 300);
}

TEST(LogLinesTest, TheMarkOfALineThatWasCutStaysBelowIt) {
  EXPECT_TRUE(MarksMissingBytes("… 7 bytes are missing here"));
  const std::string cut = "… the line above has 7 more bytes";
  EXPECT_FALSE(MarksMissingBytes(cut));
  const std::vector<LogLine> log =
      Log({{"2026-11-24T06:37:13.100Z I x", cut, "2026-11-24T06:37:13.300Z I x"}});
  EXPECT_EQ(log[1].time_ms, kTime + 100);
}

TEST(LogLinesTest, ASelectionIsOfTheLastLinesSinceATime) {
  const std::vector<LogLine> log = {{"a", 1}, {"b", 2}, {"c", 3}, {"d", 4}};
  EXPECT_EQ(Select(log, {}).texts, (Lines{"a", "b", "c", "d"}));
  EXPECT_EQ(Select(log, {.since_ms = 2}).texts, (Lines{"b", "c", "d"}));
  EXPECT_EQ(Select(log, {.tail = 1}).texts, (Lines{"d"}));
  EXPECT_EQ(Select(log, {.since_ms = 2, .tail = 2}).texts, (Lines{"c", "d"}));
  EXPECT_EQ(Select(log, {.since_ms = 4, .tail = 9}).texts, (Lines{"d"}));
  EXPECT_TRUE(Select(log, {.tail = 0}).texts.empty());
}

TEST(LogLinesTest, ASelectionOfManyLinesIsThatOfAllOfThemInOrder) {
  // Two ranks, one after the other, with the same times.
  constexpr int kLines = 5000;
  std::vector<LogLine> log;
  for (const char rank : {'a', 'b'}) {
    for (int i = 0; i < kLines; ++i) log.push_back({fmt::format("{}{}", rank, i), i});
  }
  const Selection last = Select(log, {.tail = 3});
  EXPECT_EQ(last.texts, (Lines{"b4998", "a4999", "b4999"}));
  EXPECT_EQ(last.left_out, 0);
  EXPECT_EQ(Select(log, {.tail = 2}, LogOrder::kArrival).texts, (Lines{"b4998", "b4999"}));
}

TEST(LogLinesTest, TheOldestLinesAreDroppedIfTheyTakeTooManyBytes) {
  std::vector<LogLine> log;
  for (const char rank : {'a', 'b'}) {
    for (int i = 100; i < 200; ++i) log.push_back({fmt::format("{}{}", rank, i), i});
  }
  constexpr int64_t kBytes = 4 + sizeof(LogLine);  // size of one line
  const Selection bounded = Select(log, {.most_bytes = 3 * kBytes});
  EXPECT_EQ(bounded.texts, (Lines{"b198", "a199", "b199"}));
  EXPECT_EQ(bounded.left_out, 197);
  EXPECT_EQ(Select(log, {.tail = 5, .most_bytes = 3 * kBytes}).left_out, 2);
  EXPECT_EQ(Select(log, {.tail = 2, .most_bytes = 3 * kBytes}).left_out, 0);
  EXPECT_EQ(Select(log, {.since_ms = 198, .most_bytes = 3 * kBytes}).left_out, 1);
}

const std::string kTimed = "2026-11-24T06:37:13.100Z I rank=1 x";

TEST(LogLinesTest, OnlyWhatWasNotThereBeforeIsNew) {
  SeenLogLines seen;
  const Lines first = {"… 7 bytes are missing here", "a", "x"};
  EXPECT_EQ(NewOf(first, &seen), first);
  EXPECT_TRUE(NewOf({"a", "x"}, &seen).empty());
  EXPECT_EQ(NewOf({"… 9 bytes are missing here", "x", "b", "x"}, &seen), (Lines{"b", "x"}))
      << "the second x";
}

TEST(LogLinesTest, ALineThatHasLeftTheLogIsNewWhenItIsLoggedAgain) {
  SeenLogLines seen;
  NewOf({"  at frame 1", "a"}, &seen);
  EXPECT_TRUE(NewOf({"a"}, &seen).empty()) << "the log moves on, or the job has left the worker";
  EXPECT_EQ(NewOf({"a", "  at frame 1"}, &seen), (Lines{"  at frame 1"}));
}

TEST(LogLinesTest, TimedLinesOfAWorkerThatComesBackAreNotNew) {
  SeenLogLines seen;
  NewOf({kTimed, "trace", "a"}, &seen);
  for (const char* later : {"b", "c"})
    EXPECT_EQ(NewOf({"a", later}, &seen, LogReadEnd::kWithoutWorkers), (Lines{later}));
  EXPECT_EQ(NewOf({"a", "c", "trace"}, &seen, LogReadEnd::kWithoutWorkers), (Lines{"trace"}))
      << "the same trace of another rank";
  EXPECT_EQ(NewOf({kTimed, "trace", "a", "c", "trace"}, &seen), (Lines{"trace"}))
      << "a line without a time";
}

TEST(LogLinesTest, AFailedReadForgetsNothing) {
  SeenLogLines seen;
  NewOf({kTimed, "trace", "a"}, &seen);
  EXPECT_TRUE(NewOf({}, &seen, LogReadEnd::kFailed).empty());
  EXPECT_EQ(NewOf({"a", "b"}, &seen, LogReadEnd::kFailed), (Lines{"b"}));
  EXPECT_EQ(NewOf({kTimed, "trace", "a", "b", "c"}, &seen), (Lines{"c"}));
}

}  // namespace
}  // namespace troupe
