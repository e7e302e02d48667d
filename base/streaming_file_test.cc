#include "base/streaming_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string>

#include "base/aligned_memory.h"
#include "base/faulty_file_system.h"
#include "base/file_system.h"
#include "base/temporary_directory.h"

namespace troupe {
namespace {

constexpr int64_t kPiece = 64 << 10;

class StreamingFileTest : public ::testing::TestWithParam<WriteMethod> {
 protected:
  StreamingFileTest() : memory_(*AlignedMemory::Make(9 * kPiece)) {
    for (size_t i = 0; i < memory_.bytes().size(); ++i)
      memory_.bytes()[i] = static_cast<std::byte>(i * 7 + i / 4096);
    if (GetParam() == WriteMethod::kIoUringRegistered) ring_ = MakeStreamingRing(memory_.bytes());
  }

  // Writes `size` bytes of memory_ in pieces.
  Status Write(FileSystem& files, const std::string& path, int64_t size, WriteMethod* method) {
    TROUPE_ASSIGN_OR_RETURN(
        const auto file,
        files.CreateStreaming(
            path, {.size_bytes = size, .ring = ring_.get(), .best_method = GetParam()}));
    *method = file->method();
    int slot = 0;
    for (int64_t at = 0; at < size; at += kPiece) {
      const int64_t rounded =
          (size - at + kStreamAlignment - 1) / kStreamAlignment * kStreamAlignment;
      const int64_t bytes = std::min(kPiece, rounded);
      TROUPE_RETURN_IF_ERROR(file->StartWrite(
          slot, at, memory_.bytes().subspan(static_cast<size_t>(at), static_cast<size_t>(bytes))));
      slot = (slot + 1) % StreamingFile::kSlots;
    }
    TROUPE_RETURN_IF_ERROR(file->Finish());
    return file->Close();
  }

  AlignedMemory memory_;
  std::unique_ptr<IoRing> ring_;
  TemporaryDirectory folder_;
  PosixFileSystem files_;
};

TEST_P(StreamingFileTest, WritesWhatItIsGivenAndCutsTheFileToItsSize) {
  for (const int64_t size :
       {int64_t{1}, int64_t{4096}, kPiece - 1, 9 * kPiece, 8 * kPiece + 4097}) {
    const std::string path = folder_.Child(std::to_string(size));
    WriteMethod method;
    const Status written = Write(files_, path, size, &method);
    ASSERT_TRUE(written.ok()) << ToString(written);
    EXPECT_GE(method, GetParam());
    const auto text = ReadFile(files_, path, 1 << 20, SymbolicLinks::kRefuse);
    ASSERT_TRUE(text.ok());
    EXPECT_EQ(*text, std::string(reinterpret_cast<const char*>(memory_.bytes().data()),
                                 static_cast<size_t>(size)));
  }
}

TEST_P(StreamingFileTest, RefusesAFileThatIsThere) {
  WriteMethod method;
  ASSERT_TRUE(Write(files_, folder_.Child("f"), 5, &method).ok());
  EXPECT_EQ(Write(files_, folder_.Child("f"), 5, &method).code(), StatusCode::kAlreadyExists);
}

TEST_P(StreamingFileTest, AnInjectedFaultOfAWriteOrOfTheSyncIsReturned) {
  for (const FileOperation operation : {FileOperation::kWrite, FileOperation::kSync}) {
    FaultyFileSystem faulty(files_);
    faulty.Add({.operation = operation, .path_contains = "f", .error_number = EIO});
    WriteMethod method;
    const std::string path = folder_.Child("f" + std::to_string(static_cast<int>(operation)));
    EXPECT_FALSE(Write(faulty, path, 9 * kPiece, &method).ok());
    EXPECT_EQ(faulty.Calls(operation, "f"), 1);
  }
}

TEST_P(StreamingFileTest, AFileThatWasGivenUpLeavesNothingOfItsForTheNext) {
  const auto all = memory_.bytes();
  for (int i = 0; i < 3; ++i) {
    auto file = files_.CreateStreaming(
        folder_.Child("given-up-" + std::to_string(i)),
        {.size_bytes = 9 * kPiece, .ring = ring_.get(), .best_method = GetParam()});
    ASSERT_TRUE(file.ok()) << ToString(file.status());
    ASSERT_TRUE((*file)->StartWrite(0, 0, all.first(static_cast<size_t>(kPiece))).ok());
    ASSERT_TRUE((*file)->StartWrite(1, kPiece, all.first(static_cast<size_t>(kPiece))).ok());
  }
  if (ring_ != nullptr) {
    EXPECT_EQ(ring_->in_flight(), 0u);
  }
  WriteMethod method;
  ASSERT_TRUE(Write(files_, folder_.Child("next"), 9 * kPiece, &method).ok());
  const auto text = ReadFile(files_, folder_.Child("next"), 1 << 20, SymbolicLinks::kRefuse);
  EXPECT_EQ(text->substr(0, 4096), std::string(reinterpret_cast<const char*>(all.data()), 4096));
}

TEST_P(StreamingFileTest, ASizeThatNoFileCanHaveIsRefusedAtOnce) {
  const auto file = files_.CreateStreaming(
      folder_.Child("f"), {.size_bytes = int64_t{1} << 62, .best_method = GetParam()});
  EXPECT_FALSE(file.ok());
  EXPECT_EQ(files_.Stat(folder_.Child("f"), SymbolicLinks::kRefuse).status().code(),
            StatusCode::kNotFound);
}

INSTANTIATE_TEST_SUITE_P(Methods, StreamingFileTest,
                         ::testing::Values(WriteMethod::kIoUringRegistered, WriteMethod::kIoUring,
                                           WriteMethod::kDirect, WriteMethod::kBuffered),
                         [](const auto& method) { return std::string(Name(method.param)); });

TEST(StreamingFile, WritesThroughTheCacheWhereTheFileSystemHasNoDirectWrites) {
  const std::string path = "/dev/shm/troupe-streaming-test-" + std::to_string(getpid());
  if (!std::filesystem::is_directory("/dev/shm")) GTEST_SKIP() << "there is no /dev/shm";
  PosixFileSystem files;
  const auto memory = *AlignedMemory::Make(4096);
  auto file = files.CreateStreaming(path, {.size_bytes = 100});
  ASSERT_TRUE(file.ok()) << ToString(file.status());
  EXPECT_TRUE((*file)->StartWrite(0, 0, memory.bytes()).ok());
  EXPECT_TRUE((*file)->Finish().ok());
  EXPECT_TRUE((*file)->Close().ok());
  EXPECT_EQ(files.Stat(path, SymbolicLinks::kRefuse)->size_bytes, 100);
  EXPECT_TRUE(files.Remove(path).ok());
}

}  // namespace
}  // namespace troupe
