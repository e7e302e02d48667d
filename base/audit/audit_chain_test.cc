#include "base/audit/audit_chain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

namespace troupe {
namespace {

using ::testing::HasSubstr;

AuditRecord Record(const std::string& target) {
  return {.wall_time_ns = 7,
          .identity = "spiffe://lab/submitter/ann",
          .rpc = "/troupe.v1.JobService/CancelJob",
          .outcome = AuditOutcome::kAllowed,
          .target = target};
}

// Three lines, without their newlines.
std::vector<std::string> Lines() {
  std::vector<std::string> lines;
  AuditHead head;
  for (const char* target : {"jobs/a", "jobs/b", "jobs/c"}) {
    lines.push_back(AuditLine(Record(target), &head));
    EXPECT_EQ(lines.back().back(), '\n');
    lines.back().pop_back();
  }
  return lines;
}

// Returns the error of the first line that does not follow the one before.
Status Follow(const std::vector<std::string>& lines) {
  AuditHead head;
  for (const std::string& line : lines) TROUPE_RETURN_IF_ERROR(FollowAuditLine(line, &head));
  return OkStatus();
}

TEST(AuditChain, ALineIsAnObjectWithTheFieldsOfItsRecord) {
  AuditRecord record = Record("jobs/a");
  record.outcome = AuditOutcome::kDenied;
  record.reason = "it \"needs\" an operator";
  AuditHead head;
  const auto json = nlohmann::json::parse(AuditLine(record, &head));
  EXPECT_EQ(json.at("sequence"), 1);
  EXPECT_EQ(json.at("wall_time_ns"), 7);
  EXPECT_EQ(json.at("identity"), "spiffe://lab/submitter/ann");
  EXPECT_EQ(json.at("rpc"), "/troupe.v1.JobService/CancelJob");
  EXPECT_EQ(json.at("outcome"), "DENIED");
  EXPECT_EQ(json.at("target"), "jobs/a");
  EXPECT_EQ(json.at("reason"), "it \"needs\" an operator");
  EXPECT_EQ(json.at("previous"), std::string(64, '0'));
  EXPECT_EQ(json.at("hash"), head.hash);
  EXPECT_EQ(json.size(), 9u);
}

TEST(AuditChain, ALineIsAsciiWithoutControlCharacters) {
  const std::string target = "jobs/\u202e\u2028\u009b\x7f\x1b\nf\u00fcr";
  AuditHead head;
  const std::string line = AuditLine(Record(target), &head);
  EXPECT_TRUE(std::ranges::all_of(line.substr(0, line.size() - 1), [](char c) {
    return c >= ' ' && c < 0x7f;
  })) << line;
  EXPECT_EQ(nlohmann::json::parse(line).at("target"), target);
}

TEST(AuditChain, AWholeChainIsAccepted) {
  const std::vector<std::string> lines = Lines();
  const Status status = Follow(lines);
  EXPECT_TRUE(status.ok()) << ToString(status);
  const auto last = CheckAuditLine(lines.back());
  ASSERT_TRUE(last.ok());
  EXPECT_EQ(last->sequence, 3);
}

TEST(AuditChain, ARemovedAMovedAndARepeatedLineAreFound) {
  const std::vector<std::string> lines = Lines();
  for (const auto& broken : std::vector<std::vector<std::string>>{{lines[1], lines[2]},
                                                                  {lines[0], lines[2]},
                                                                  {lines[0], lines[2], lines[1]},
                                                                  {lines[0], lines[0]}}) {
    const Status status = Follow(broken);
    EXPECT_EQ(status.code(), StatusCode::kDataLoss);
    EXPECT_THAT(ToString(status), HasSubstr("sequence number"));
  }
}

TEST(AuditChain, EveryChangedByteIsFound) {
  std::vector<std::string> lines = Lines();
  const std::string whole = lines[1];
  for (size_t i = 0; i < whole.size(); ++i) {
    lines[1] = whole;
    lines[1][i] ^= 1;
    EXPECT_EQ(Follow(lines).code(), StatusCode::kDataLoss) << "byte " << i << ": " << lines[1];
  }
}

TEST(AuditChain, ALineOfAnotherLogWithTheRightNumberIsFound) {
  std::vector<std::string> lines = Lines();
  AuditHead head;
  AuditLine(Record("jobs/other"), &head);
  lines[1] = AuditLine(Record("jobs/b"), &head);
  lines[1].pop_back();
  EXPECT_THAT(ToString(Follow(lines)), HasSubstr("follows a record with the hash"));
}

TEST(AuditChain, TextsThatAreNoLinesAreRefused) {
  for (const char* text : {"", "{}", "[1]", "\"hash\":\"\"}"}) {
    EXPECT_EQ(CheckAuditLine(text).status().code(), StatusCode::kDataLoss) << text;
  }
}

TEST(AuditChain, LongTextsAndBytesThatAreNotTextLeaveALineInItsBound) {
  AuditRecord record = Record(std::string(1 << 20, '\x01'));
  record.identity = record.rpc = record.reason = std::string(1 << 20, '\xff');
  AuditHead head;
  std::string line = AuditLine(record, &head);
  EXPECT_LE(line.size(), kMostAuditLineBytes);
  line.pop_back();
  AuditHead start;
  EXPECT_TRUE(FollowAuditLine(line, &start).ok());
  EXPECT_EQ(start, head);
}

}  // namespace
}  // namespace troupe
