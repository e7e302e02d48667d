#include "cli/output/output_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <string>
#include <vector>

#include "base/faulty_file_system.h"
#include "base/temporary_directory.h"
#include "cli/commands.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

class OutputFileTest : public ::testing::Test {
 protected:
  std::string Contents(const std::string& name) {
    const auto text = ReadFile(files_, folder_.Child(name), 1 << 20, SymbolicLinks::kFollow);
    return text.ok() ? *text : ToString(text.status());
  }

  // Returns the type bits of the mode: S_IFREG, S_IFLNK …
  mode_t TypeOf(const std::string& name) {
    struct stat info {};
    EXPECT_EQ(lstat(folder_.Child(name).c_str(), &info), 0) << name;
    return info.st_mode & S_IFMT;
  }

  size_t CountFiles() { return files_.List(folder_.path())->size(); }

  TemporaryDirectory folder_;
  PosixFileSystem files_;
};

TEST_F(OutputFileTest, ReplacesAFile) {
  for (const char* const text : {"first, which is longer", "second"}) {
    ASSERT_TRUE(WriteOutputFile(files_, folder_.Child("f"), text).ok());
    EXPECT_EQ(Contents("f"), text);
  }
  EXPECT_EQ(CountFiles(), 1u);
  EXPECT_EQ(WriteOutputFile(files_, "", "x").code(), StatusCode::kInvalidArgument);
}

TEST_F(OutputFileTest, AFolderIsRefusedWithTheFlagThatNamesIt) {
  const std::string folder = folder_.path();
  const std::string absent = folder_.Child("absent/");
  ASSERT_EQ(symlink(".", folder_.Child("link").c_str()), 0);
  for (const std::string& path : {folder, folder + "/", folder_.Child("link"), absent}) {
    const Status refused = CheckNamesFile(files_, "--output", path);
    EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(Message(refused),
              "--output names a file, and " + path + " is a folder: name a file in it");
  }
  ASSERT_TRUE(WriteOutputFile(files_, folder_.Child("f"), "page").ok());
  for (const std::string& path : {folder_.Child("f"), folder_.Child("absent"), std::string()})
    EXPECT_TRUE(CheckNamesFile(files_, "--output", path).ok()) << path;
}

// No coordinator runs: the commands refuse the folder before they look for one.
TEST_F(OutputFileTest, EachCommandThatWritesAFileRefusesAFolder) {
  std::ofstream(folder_.Child("job.yaml")) << "model: {preset: tiny}\n";
  const std::vector<std::vector<std::string>> lines = {
      {"report", "a", "--output", folder_.path()},
      {"trace", "a", "--steps", "1", "--output", folder_.path()},
      {"plan", folder_.Child("job.yaml"), "--html", folder_.path()}};
  const std::vector<Command> commands = AllCommands();
  for (const std::vector<std::string>& line : lines) {
    const auto command = std::ranges::find(commands, line[0], &Command::name);
    ASSERT_NE(command, commands.end()) << line[0];
    const auto parsed = command->Parse({line.begin() + 1, line.end()});
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    const Status refused = command->run(*parsed).status();
    EXPECT_EQ(ExitCodeOf(refused), ExitCode::kUsage) << line[0];
    EXPECT_THAT(Message(refused), HasSubstr("names a file, and " + folder_.path()));
  }
}

TEST_F(OutputFileTest, WritesIntoAFifoWhichStaysOne) {
  ASSERT_EQ(mkfifo(folder_.Child("fifo").c_str(), 0600), 0);
  const int reader = open(folder_.Child("fifo").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  const Status written = WriteOutputFile(files_, folder_.Child("fifo"), "page");
  EXPECT_TRUE(written.ok()) << ToString(written);
  ASSERT_EQ(TypeOf("fifo"), mode_t{S_IFIFO});
  char text[8] = {};
  EXPECT_EQ(read(reader, text, sizeof text), 4);
  EXPECT_STREQ(text, "page");
  close(reader);
}

TEST_F(OutputFileTest, WritesThroughALink) {
  ASSERT_EQ(symlink("target", folder_.Child("link").c_str()), 0);
  for (const char* const text : {"first, which is longer", "second"}) {
    ASSERT_TRUE(WriteOutputFile(files_, folder_.Child("link"), text).ok());
    EXPECT_EQ(Contents("target"), text);
  }
  EXPECT_EQ(TypeOf("link"), mode_t{S_IFLNK});
}

TEST_F(OutputFileTest, UsesATemporaryFileOfItsOwn) {
  ASSERT_TRUE(files_.MakeDirectory(folder_.Child("f.tmp")).ok());
  const Status written = WriteOutputFile(files_, folder_.Child("f"), "page");
  EXPECT_TRUE(written.ok()) << ToString(written);
  EXPECT_EQ(TypeOf("f.tmp"), mode_t{S_IFDIR});
}

TEST_F(OutputFileTest, LeavesTheFormerFileAndNothingElseAfterAnError) {
  ASSERT_TRUE(WriteOutputFile(files_, folder_.Child("f"), "former").ok());
  for (const FileOperation operation : {FileOperation::kCreate, FileOperation::kWrite,
                                        FileOperation::kSync, FileOperation::kRename}) {
    FaultyFileSystem faulty(files_);
    faulty.Add({.operation = operation, .error_number = ENOSPC});
    const Status written = WriteOutputFile(faulty, folder_.Child("f"), "page");
    EXPECT_EQ(written.code(), StatusCode::kResourceExhausted);
    EXPECT_THAT(ToString(written), HasSubstr(folder_.Child("f")));
    EXPECT_EQ(Contents("f"), "former");
    EXPECT_EQ(CountFiles(), 1u);
  }
}

}  // namespace
}  // namespace troupe
