#include "interop/recording_file_system.h"
#include "base/durable_write.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>

#include "base/temporary_directory.h"
#include "interop/testing.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;

class RecordingFileSystemTest : public ::testing::Test {
 protected:
  RecordingFileSystemTest() { std::filesystem::create_directory(Child("out")); }
  std::string Child(const std::string& name) { return folder_.Child(name); }

  Status Write(const std::string& path, const std::string& text) {
    TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file,
                            recording_.Create(path, CreateMode::kTruncate));
    return file->Append(AsBytes(text));
  }

  TemporaryDirectory folder_;
  PosixFileSystem files_;
  RecordingFileSystem recording_{files_};
};

TEST_F(RecordingFileSystemTest, RemovesWhatWasCreatedThroughItAndNothingElse) {
  ASSERT_TRUE(Write(Child("out/a"), "1").ok());
  ASSERT_TRUE(recording_.CreateStreaming(Child("out/b"), {.size_bytes = 1}).ok());
  for (const char* folder : {"out/shared", "out/own", "out/own/inner"})
    ASSERT_TRUE(recording_.MakeDirectory(Child(folder)).ok());
  ASSERT_TRUE(Write(Child("out/shared/a"), "2").ok());
  ASSERT_TRUE(Write(Child("out/own/inner/a"), "3").ok());
  // Another process writes meanwhile.
  WriteText(Child("out/notes"), "4");
  WriteText(Child("out/shared/notes"), "5");
  recording_.RemoveCreated();
  EXPECT_THAT(NamesIn(Child("out")), ElementsAre("notes", "shared"));
  EXPECT_THAT(NamesIn(Child("out/shared")), ElementsAre("notes"));
  EXPECT_EQ(ReadText(Child("out/shared/notes")), "5");
}

TEST_F(RecordingFileSystemTest, AnEmptyDirectoryIsRemovedOnlyIfItWasCreatedThroughIt) {
  ASSERT_TRUE(MakeDirectories(recording_, Child("out")).ok());
  ASSERT_TRUE(MakeDirectories(recording_, Child("new/inner")).ok());
  recording_.RemoveCreated();
  EXPECT_THAT(NamesIn(folder_.path()), ElementsAre("out"));
}

TEST_F(RecordingFileSystemTest, NoFileThatIsThereIsWrittenToOrReplaced) {
  WriteText(Child("out/mine"), "precious");
  EXPECT_EQ(Write(Child("out/mine"), "").code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(recording_.CreateStreaming(Child("out/mine"), {.size_bytes = 1}).status().code(),
            StatusCode::kAlreadyExists);
  EXPECT_EQ(WriteFileDurably(recording_, Child("out/mine"), AsBytes("other")).code(),
            StatusCode::kAlreadyExists);
  recording_.RemoveCreated();
  EXPECT_THAT(NamesIn(Child("out")), ElementsAre("mine"));
  EXPECT_EQ(ReadText(Child("out/mine")), "precious");
}

TEST_F(RecordingFileSystemTest, ARenamedFileIsRemovedUnderItsNameAndARemovedOneIsForgotten) {
  ASSERT_TRUE(WriteFileDurably(recording_, Child("out/whole"), AsBytes("1")).ok());
  EXPECT_THAT(NamesIn(Child("out")), ElementsAre("whole"));
  ASSERT_TRUE(Write(Child("out/gone"), "").ok());
  ASSERT_TRUE(recording_.Remove(Child("out/gone")).ok());
  WriteText(Child("out/gone"), "another one");
  ASSERT_TRUE(recording_.MakeDirectory(Child("out/folder")).ok());
  ASSERT_TRUE(recording_.RemoveDirectory(Child("out/folder")).ok());
  std::filesystem::create_directory(Child("out/folder"));
  recording_.RemoveCreated();
  EXPECT_THAT(NamesIn(Child("out")), ElementsAre("folder", "gone"));
  EXPECT_EQ(ReadText(Child("out/gone")), "another one");
}

}  // namespace
}  // namespace troupe
