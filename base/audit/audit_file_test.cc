#include "base/audit/audit_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "base/temporary_directory.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

class AuditFileTest : public ::testing::Test {
 protected:
  // The lines of a log with this many records.
  static std::vector<std::string> LinesOfLog(int records) {
    std::vector<std::string> lines;
    AuditHead head;
    for (int i = 0; i < records; ++i)
      lines.push_back(AuditLine({.rpc = "/a/b", .target = fmt::format("jobs/{}", i)}, &head));
    return lines;
  }

  AuditedFile Check(const std::vector<std::string>& lines) {
    {
      std::ofstream file(path_);
      for (const std::string& line : lines) file << line;
    }
    const auto audited = CheckAuditFile(files_, path_);
    EXPECT_TRUE(audited.ok()) << ToString(audited.status());
    return *audited;
  }

  TemporaryDirectory directory_;
  const std::string path_ = directory_.Child("audit.log");
  PosixFileSystem files_;
};

TEST_F(AuditFileTest, AWholeLogOfManyChunksIsAccepted) {
  const AuditedFile audited = Check(LinesOfLog(6000));
  EXPECT_TRUE(audited.error.ok()) << ToString(audited.error);
  EXPECT_EQ(audited.head.sequence, 6000);
}

TEST_F(AuditFileTest, AnEmptyLogIsAccepted) {
  const AuditedFile audited = Check({});
  EXPECT_TRUE(audited.error.ok());
  EXPECT_EQ(audited.head, AuditHead());
}

TEST_F(AuditFileTest, ARemovedLineIsFoundAndNamed) {
  std::vector<std::string> lines = LinesOfLog(5);
  lines.erase(lines.begin() + 2);
  const AuditedFile audited = Check(lines);
  EXPECT_EQ(audited.error.code(), StatusCode::kDataLoss);
  EXPECT_THAT(ToString(audited.error), HasSubstr("line 3: "));
  EXPECT_EQ(audited.head.sequence, 2);
}

TEST_F(AuditFileTest, AnIncompleteOrEndlessLastLineIsFound) {
  std::vector<std::string> lines = LinesOfLog(2);
  lines[1].pop_back();
  EXPECT_THAT(ToString(Check(lines).error), HasSubstr("line 2 has no end"));
  EXPECT_THAT(ToString(Check({std::string(4 << 20, 'x')}).error), HasSubstr("line 1 has no end"));
}

TEST_F(AuditFileTest, AFileThatCannotBeReadIsAnError) {
  EXPECT_EQ(CheckAuditFile(files_, path_).status().code(), StatusCode::kNotFound);
  EXPECT_FALSE(CheckAuditFile(files_, directory_.path()).ok());
}

}  // namespace
}  // namespace troupe
