#include "worker/daemon/rank_logs.h"
#include "base/durable_write.h"

#include <gtest/gtest.h>

#include "base/temporary_directory.h"

namespace troupe {
namespace {

class RankLogsTest : public ::testing::Test {
 protected:
  RankLogsTest() {
    config_.log_directory = folder_.path();
    config_.identity.set_name("worker-0");
    EXPECT_TRUE(MakeDirectories(files_, folder_.Child("a")).ok());
  }
  void Write(const std::string& name, std::string_view text) {
    EXPECT_TRUE(WriteFileDurably(files_, folder_.Child("a/" + name), AsBytes(text)).ok());
  }
  std::vector<std::string> Read(int rank, const std::set<int>& running = {}) {
    v1::ReadLogs request;
    request.set_request(7);
    request.set_job("jobs/a");
    request.set_rank(rank);
    std::vector<std::string> lines;
    const auto messages = ReadRankLogs(files_, config_, request, running);
    for (size_t i = 0; i < messages.size(); ++i) {
      EXPECT_EQ(messages[i].log_lines().request(), 7u);
      EXPECT_EQ(messages[i].log_lines().last(), i + 1 == messages.size());
      EXPECT_LT(messages[i].ByteSizeLong(), 1u << 20);
      lines.insert(lines.end(), messages[i].log_lines().lines().begin(),
                   messages[i].log_lines().lines().end());
    }
    return lines;
  }

  const TemporaryDirectory folder_;
  PosixFileSystem files_;
  session::Config config_;
};

TEST_F(RankLogsTest, WhatWasMovedAsideComesFirst) {
  Write("rank-2.worker-0.log.2", "oldest\n");
  Write("rank-2.worker-0.log.1", "older\n");
  Write("rank-2.worker-0.log", "newest\n");
  EXPECT_EQ(Read(2), (std::vector<std::string>{"oldest", "older", "newest"}));
}

TEST_F(RankLogsTest, ReadsThisWorkersRanksInOrderAndNoOtherFile) {
  Write("rank-10.worker-0.log", "ten\n");
  Write("rank-2.worker-0.log", "two\nmore");
  Write("rank-3.worker-1.log", "another worker's\n");
  Write("rank-2.worker-0.flight.json", "{}\n");
  EXPECT_EQ(Read(-1), (std::vector<std::string>{"two", "more", "ten"}));
  EXPECT_EQ(Read(10), (std::vector<std::string>{"ten"}));
}

TEST_F(RankLogsTest, ARankWithoutAFileHasNoLines) { EXPECT_TRUE(Read(4).empty()); }

TEST_F(RankLogsTest, LongLogsComeInSeveralMessagesFromTheirEndOnWholeLines) {
  std::string text;
  for (int i = 0; i < 500000; ++i) text += "line " + std::to_string(i) + "\n";
  Write("rank-0.worker-0.log", text);
  const auto lines = Read(0);
  ASSERT_GT(lines.size(), 100000u);
  EXPECT_EQ(lines.back(), "line 499999");
  EXPECT_TRUE(lines[1].starts_with("line "));
  size_t shown = 0;
  for (size_t i = 1; i < lines.size(); ++i) shown += lines[i].size() + 1;
  EXPECT_EQ(lines[0], fmt::format("… {} bytes are missing here", text.size() - shown));
}

TEST_F(RankLogsTest, AFileThatWasMovedAsideAddsOnlyWhatTheNewestLeavesOfTheLimit) {
  constexpr size_t kLimit = 4 << 20;
  std::string older;
  for (int i = 0; i < 400000; ++i) older += fmt::format("older {:06}\n", i);
  std::string newest;
  while (newest.size() < kLimit * 3 / 4) newest += "newest\n";
  ASSERT_GT(older.size(), kLimit);
  Write("rank-0.worker-0.log.2", "oldest\n");
  Write("rank-0.worker-0.log.1", older);
  Write("rank-0.worker-0.log", newest);
  const auto lines = Read(0);
  size_t shown = 0;
  for (size_t i = 1; i < lines.size(); ++i) shown += lines[i].size() + 1;
  EXPECT_LE(shown, kLimit);
  EXPECT_GT(shown, kLimit - 20);
  const size_t all = older.size() + newest.size() + std::string_view("oldest\n").size();
  EXPECT_EQ(lines[0], fmt::format("… {} bytes are missing here", all - shown));
  EXPECT_TRUE(lines[1].starts_with("older ")) << lines[1];
  EXPECT_EQ(lines.back(), "newest");
}

TEST_F(RankLogsTest, BytesThatAreNoTextAreMadePrintable) {
  Write("rank-0.worker-0.log",
        "a\xff"
        "b\n");
  EXPECT_EQ(Read(0), (std::vector<std::string>{"a\xEF\xBF\xBD"
                                               "b"}));
}

TEST_F(RankLogsTest, ALineThatIsTooLongIsCutBetweenCharacters) {
  const std::string begin((256 << 10) - 1, 'a');
  Write("rank-0.worker-0.log", begin + "éb\nnext\n");
  EXPECT_EQ(Read(0),
            (std::vector<std::string>{begin, "… the line above has 3 more bytes", "next"}));
}

TEST_F(RankLogsTest, ALastLineWithoutItsEndIsSentOnceItsRankHasEnded) {
  Write("rank-0.worker-0.log", "whole\nhalf of");
  Write("rank-1.worker-0.log", "half of");
  EXPECT_EQ(Read(-1, {0, 1}), (std::vector<std::string>{"whole"}));
  EXPECT_EQ(Read(-1, {1}), (std::vector<std::string>{"whole", "half of"}));
  EXPECT_EQ(Read(1), (std::vector<std::string>{"half of"}));
}

TEST_F(RankLogsTest, OfAJobThatIsGoneGoWithAllThatIsNextToThem) {
  constexpr int64_t kLater = int64_t{1} << 62;
  for (const char* name : {"rank-2.worker-0.log", "rank-2.worker-0.log.1", "rank-2.worker-0.trace",
                           "rank-12.worker-0.epoch-3.flight.json"}) {
    Write(name, "x");
  }
  Write("rank-3.worker-1.log", "another worker's\n");
  EXPECT_TRUE(RemoveRankLogs(files_, config_, "a", 0).ok()) << "all is newer";
  EXPECT_EQ(files_.List(folder_.Child("a"))->size(), 5u);
  ASSERT_TRUE(RemoveRankLogs(files_, config_, "a", kLater).ok());
  const auto left = files_.List(folder_.Child("a"));
  ASSERT_EQ(left->size(), 1u);
  EXPECT_EQ(left->front().name, "rank-3.worker-1.log");
  config_.identity.set_name("worker-1");
  ASSERT_TRUE(RemoveRankLogs(files_, config_, "a", kLater).ok());
  EXPECT_FALSE(files_.Stat(folder_.Child("a"), SymbolicLinks::kFollow).ok());
  EXPECT_TRUE(RemoveRankLogs(files_, config_, "a", kLater).ok()) << "nothing is left";
}

}  // namespace
}  // namespace troupe
