#include "base/file_system.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/durable_write.h"
#include "base/faulty_file_system.h"
#include "base/temporary_directory.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

std::string Contents(FileSystem& files, const std::string& path) {
  const auto text = ReadFile(files, path, 1 << 20, SymbolicLinks::kRefuse);
  return text.ok() ? *text : ToString(text.status());
}

TEST(PosixFileSystem, AppendsAndWritesAtOffsetsAndReadsBack) {
  TemporaryDirectory folder;
  PosixFileSystem files;
  const std::string path = folder.Child("a");
  auto file = files.Create(path, CreateMode::kExclusive);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE((*file)->Append(AsBytes("hello ")).ok());
  ASSERT_TRUE((*file)->Append(AsBytes("world")).ok());
  ASSERT_TRUE((*file)->WriteAt(0, AsBytes("J")).ok());
  ASSERT_TRUE((*file)->Sync().ok());
  ASSERT_TRUE((*file)->Close().ok());
  EXPECT_EQ(Contents(files, path), "Jello world");

  auto mapped = files.Map(path, SymbolicLinks::kRefuse);
  ASSERT_TRUE(mapped.ok());
  EXPECT_EQ((*mapped)->bytes().size(), 11u);
  auto readable = files.Open(path, SymbolicLinks::kRefuse);
  ASSERT_TRUE(readable.ok());
  std::byte bytes[4];
  EXPECT_TRUE((*readable)->ReadAt(7, bytes).ok());
  EXPECT_EQ((*readable)->ReadAt(8, bytes).code(), StatusCode::kOutOfRange);
}

TEST(PosixFileSystem, ExclusiveCreationAndMkdirRefuseWhatIsThere) {
  TemporaryDirectory folder;
  PosixFileSystem files;
  ASSERT_TRUE(files.MakeDirectory(folder.Child("d")).ok());
  EXPECT_EQ(files.MakeDirectory(folder.Child("d")).code(), StatusCode::kAlreadyExists);
  ASSERT_TRUE(files.Create(folder.Child("f"), CreateMode::kExclusive).ok());
  EXPECT_EQ(files.Create(folder.Child("f"), CreateMode::kExclusive).status().code(),
            StatusCode::kAlreadyExists);
  EXPECT_TRUE(files.Create(folder.Child("f"), CreateMode::kTruncate).ok());
}

TEST(PosixFileSystem, DoesNotFollowLinksUnlessAskedAndNeverOpensAFifo) {
  TemporaryDirectory folder;
  PosixFileSystem files;
  ASSERT_TRUE(WriteFileDurably(files, folder.Child("target"), AsBytes("x")).ok());
  ASSERT_EQ(symlink(folder.Child("target").c_str(), folder.Child("link").c_str()), 0);
  ASSERT_EQ(mkfifo(folder.Child("fifo").c_str(), 0600), 0);
  EXPECT_EQ(files.Open(folder.Child("link"), SymbolicLinks::kRefuse).status().code(),
            StatusCode::kFailedPrecondition);
  EXPECT_TRUE(files.Open(folder.Child("link"), SymbolicLinks::kFollow).ok());
  EXPECT_EQ(files.Create(folder.Child("link"), CreateMode::kTruncate).status().code(),
            StatusCode::kFailedPrecondition);
  EXPECT_EQ(files.Open(folder.Child("fifo"), SymbolicLinks::kRefuse).status().code(),
            StatusCode::kFailedPrecondition);
  EXPECT_EQ(files.Open(folder.path(), SymbolicLinks::kRefuse).status().code(),
            StatusCode::kFailedPrecondition);
}

TEST(PosixFileSystem, ListsSortedWithKindsAndReportsSizeAndFreeSpace) {
  TemporaryDirectory folder;
  PosixFileSystem files;
  ASSERT_TRUE(WriteFileDurably(files, folder.Child("b"), AsBytes("123")).ok());
  ASSERT_TRUE(files.MakeDirectory(folder.Child("a")).ok());
  const auto entries = files.List(folder.path());
  ASSERT_TRUE(entries.ok());
  ASSERT_EQ(entries->size(), 2u);
  EXPECT_EQ((*entries)[0].name, "a");
  EXPECT_EQ((*entries)[0].kind, FileKind::kDirectory);
  EXPECT_EQ((*entries)[1].kind, FileKind::kRegular);
  EXPECT_EQ(files.Stat(folder.Child("b"), SymbolicLinks::kRefuse)->size_bytes, 3);
  EXPECT_GT(*files.FreeBytes(folder.path()), 0);
  EXPECT_EQ(files.List(folder.Child("none")).status().code(), StatusCode::kNotFound);
}

TEST(PosixFileSystem, MakesMissingDirectoriesAndRefusesAFileInTheWay) {
  TemporaryDirectory folder;
  PosixFileSystem files;
  EXPECT_TRUE(MakeDirectories(files, folder.Child("x/y/z")).ok());
  EXPECT_TRUE(MakeDirectories(files, folder.Child("x/y/z")).ok());
  ASSERT_TRUE(WriteFileDurably(files, folder.Child("f"), AsBytes("1")).ok());
  EXPECT_EQ(MakeDirectories(files, folder.Child("f")).code(), StatusCode::kFailedPrecondition);
}

TEST(PosixFileSystem, RefusesToReadAboveTheLimitAndNamesBothNumbers) {
  TemporaryDirectory folder;
  PosixFileSystem files;
  ASSERT_TRUE(WriteFileDurably(files, folder.Child("f"), AsBytes("12345")).ok());
  const auto text = ReadFile(files, folder.Child("f"), 4, SymbolicLinks::kRefuse);
  EXPECT_EQ(text.status().code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(Message(text.status())), HasSubstr("size 5 is above the limit of 4"));
}

TEST(Paths, JoinAndParent) {
  EXPECT_EQ(JoinPath("/a", "b"), "/a/b");
  EXPECT_EQ(JoinPath("/a/", "b"), "/a/b");
  EXPECT_EQ(ParentDirectory("/a/b"), "/a");
  EXPECT_EQ(ParentDirectory("/a/b/"), "/a");
  EXPECT_EQ(ParentDirectory("/b"), "/");
  EXPECT_EQ(ParentDirectory("b"), ".");
}

TEST(FaultyFileSystem, FailsTheChosenCallOnTheChosenPathOnly) {
  TemporaryDirectory folder;
  PosixFileSystem posix;
  FaultyFileSystem files(posix);
  files.Add({.operation = FileOperation::kWrite,
             .path_contains = "victim",
             .first_call = 2,
             .error_number = ENOSPC});
  auto other = files.Create(folder.Child("other"), CreateMode::kExclusive);
  auto victim = files.Create(folder.Child("victim"), CreateMode::kExclusive);
  ASSERT_TRUE((*other)->Append(AsBytes("abcd")).ok());
  ASSERT_TRUE((*victim)->Append(AsBytes("abcd")).ok());
  EXPECT_EQ((*victim)->Append(AsBytes("efgh")).code(), StatusCode::kResourceExhausted);
  EXPECT_TRUE((*other)->Append(AsBytes("efgh")).ok());
  EXPECT_EQ(Contents(posix, folder.Child("victim")), "abcdef");  // half of the failed write
  EXPECT_EQ(files.Calls(FileOperation::kWrite, "victim"), 2);
}

}  // namespace
}  // namespace troupe
