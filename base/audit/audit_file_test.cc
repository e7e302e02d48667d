#include "base/audit/audit_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <utility>
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
  EXPECT_TRUE(audited.is_empty);
  EXPECT_FALSE(Check(LinesOfLog(1)).is_empty);
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

// A log of nine records in three files.
class AuditLogFilesTest : public AuditFileTest {
 protected:
  AuditLogFilesTest() {
    const std::vector<std::string> lines = LinesOfLog(9);
    for (size_t i = 0; i < lines.size(); ++i) {
      const std::string file = i < 3 ? path_ + ".3" : i < 6 ? path_ + ".6" : path_;
      texts_[file] += lines[i];
    }
    for (const auto& [file, text] : texts_) Write(file, text);
  }

  static void Write(const std::string& file, const std::string& text) {
    std::ofstream(file) << text;
  }
  AuditedFile CheckLog() {
    const auto audited = CheckAuditLog(files_, path_);
    EXPECT_TRUE(audited.ok()) << ToString(audited.status());
    return *audited;
  }

  std::map<std::string, std::string> texts_;
};

TEST_F(AuditLogFilesTest, TheChainGoesThroughAllFilesInTheOrderOfTheirNumbers) {
  std::filesystem::rename(path_, path_ + ".10");
  texts_[path_ + ".10"] = texts_[path_];
  Write(directory_.Child("audit.log.gz"), "no file of the log");
  Write(directory_.Child("audit.log.010"), "nor this");
  std::filesystem::create_directory(path_ + ".4");
  AuditedFile audited = CheckLog();
  EXPECT_TRUE(audited.error.ok()) << "without a file to append to: " << ToString(audited.error);
  EXPECT_EQ(audited.head.sequence, 9);
  EXPECT_TRUE(audited.is_empty);
  Write(path_, "");
  audited = CheckLog();
  EXPECT_TRUE(audited.error.ok()) << ToString(audited.error);
  EXPECT_TRUE(audited.is_empty);
  EXPECT_EQ(audited.before, AuditHead());
  EXPECT_EQ(audited.head.sequence, 9);
}

TEST_F(AuditLogFilesTest, ARemovedFileIsFound) {
  for (const auto& [file, next] :
       {std::pair(path_ + ".3", path_ + ".6"), std::pair(path_ + ".6", path_)}) {
    std::filesystem::remove(file);
    const AuditedFile audited = CheckLog();
    EXPECT_EQ(audited.error.code(), StatusCode::kDataLoss);
    EXPECT_THAT(ToString(audited.error), HasSubstr(next + ": line 1: "));
    Write(file, texts_[file]);
  }
  EXPECT_TRUE(CheckLog().error.ok());
  EXPECT_FALSE(CheckLog().is_empty);
}

TEST_F(AuditLogFilesTest, ARemovedLineOfAnyFileIsFoundAlsoTheLastOfAFullOne) {
  for (const auto& [file, text] : texts_) {
    const size_t second = text.find('\n') + 1, third = text.find('\n', second) + 1;
    for (const std::string& rest :
         {text.substr(second), text.substr(0, second) + text.substr(third),
          text.substr(0, third)}) {
      Write(file, rest);
      // The chain has no key, so the end of the log itself is not protected.
      const bool is_found = file != path_ || rest != text.substr(0, third);
      EXPECT_EQ(!CheckLog().error.ok(), is_found) << file << "\n" << rest;
    }
    Write(file, text);
  }
}

// A file system in which a coordinator begins a new file of the log when its file is first opened.
class FilesOfARunningLog final : public PosixFileSystem {
 public:
  FilesOfARunningLog(std::string path, int64_t last, std::string next)
      : path_(std::move(path)), last_(last), next_(std::move(next)) {}

  StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string& path,
                                               SymbolicLinks links) override {
    if (path == path_ && !std::exchange(has_begun_, true)) {
      std::filesystem::rename(path_, FullAuditFile(path_, last_));
      std::ofstream(path_) << next_;
    }
    return PosixFileSystem::Open(path, links);
  }

 private:
  const std::string path_;
  const int64_t last_;
  const std::string next_;
  bool has_begun_ = false;
};

TEST_F(AuditLogFilesTest, ALogWhoseFileBecomesFullMeanwhileIsWhole) {
  FilesOfARunningLog files(path_, 9, LinesOfLog(10).back());
  const auto audited = CheckAuditLog(files, path_);
  ASSERT_TRUE(audited.ok()) << ToString(audited.status());
  EXPECT_TRUE(audited->error.ok()) << ToString(audited->error);
  EXPECT_EQ(audited->head.sequence, 10);
}

TEST_F(AuditLogFilesTest, OneFileIsCheckedByItself) {
  const auto audited = CheckAuditFile(files_, path_ + ".6");
  ASSERT_TRUE(audited.ok()) << ToString(audited.status());
  EXPECT_TRUE(audited->error.ok()) << ToString(audited->error);
  EXPECT_EQ(audited->before.sequence, 3);
  EXPECT_EQ(audited->head.sequence, 6);
  EXPECT_EQ(audited->before, CheckAuditFile(files_, path_ + ".3")->head);
}

}  // namespace
}  // namespace troupe
