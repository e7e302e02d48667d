#include "checkpoint/write/snapshot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <numeric>

#include "base/check.h"
#include "base/faulty_file_system.h"
#include "base/temporary_directory.h"
#include "checkpoint/format/attempt.h"
#include "checkpoint/format/digest.h"

namespace troupe {
namespace {

// Three tensors: one is larger than a single write, and no size is a multiple of the alignment.
class SnapshotTest : public ::testing::Test {
 protected:
  SnapshotTest() {
    const int64_t elements[] = {3 << 20, 5, 70'001};
    for (int i = 0; i < 3; ++i) {
      auto& data = data_.emplace_back(static_cast<size_t>(elements[i]));
      std::iota(data.begin(), data.end(), static_cast<float>(i));
      tensors_.push_back({{fmt::format("tensor.{}", i), "F32", {elements[i]}, {{0}, {elements[i]}}},
                          std::as_bytes(std::span(data))});
    }
  }

  std::string ReadShard(const std::string& directory) {
    auto text =
        ReadFile(files_, JoinPath(directory, ShardFileName(0)), 1 << 28, SymbolicLinks::kRefuse);
    return text.ok() ? *text : ToString(text.status());
  }

  std::vector<std::vector<float>> data_;
  std::vector<ShardTensor> tensors_;
  const std::atomic<bool> stop_{false};
  PosixFileSystem files_;
};

TEST_F(SnapshotTest, WritesTheSameFileAsIsWrittenFromTheTensorsByEveryMethod) {
  TemporaryDirectory folder;
  const auto direct = WriteShard(files_, folder.path(), 0, tensors_);
  ASSERT_TRUE(direct.ok()) << ToString(direct.status());
  const std::string expected = ReadShard(folder.path());
  EXPECT_EQ(Xxh128Of(AsBytes(expected)), direct->digest());
  auto snapshot = Snapshot::Make(0, tensors_);
  ASSERT_TRUE(snapshot.ok());
  EXPECT_EQ(snapshot->bytes(), static_cast<int64_t>(expected.size()));
  ASSERT_TRUE(snapshot->Copy(stop_).ok());
  for (const auto method :
       {WriteMethod::kIoUringRegistered, WriteMethod::kDirect, WriteMethod::kBuffered}) {
    TemporaryDirectory other;
    WriteMethod used;
    const auto shard =
        snapshot->Write(files_, other.path(), {.best_method = method, .method = &used});
    ASSERT_TRUE(shard.ok()) << ToString(shard.status());
    EXPECT_GE(used, method);
    EXPECT_EQ(shard->SerializeAsString(), direct->SerializeAsString());
    EXPECT_EQ(ReadShard(other.path()), expected);
  }
}

TEST_F(SnapshotTest, ItsMemoryIsPinnedWholeAsLongAsItLives) {
  bool pinned = false;
  size_t bytes = 0;
  const Snapshot::Pin pin = [&](std::span<std::byte> memory) {
    pinned = true;
    bytes = memory.size();
    return std::shared_ptr<void>(memory.data(), [&pinned](void*) { pinned = false; });
  };
  {
    auto snapshot = Snapshot::Make(0, tensors_, pin);
    ASSERT_TRUE(snapshot.ok());
    const Snapshot moved = *std::move(snapshot);
    EXPECT_TRUE(pinned);
    EXPECT_GE(static_cast<int64_t>(bytes), moved.bytes());
  }
  EXPECT_FALSE(pinned);
}

TEST_F(SnapshotTest, WhatChangesAfterTheCopyIsNotWritten) {
  auto snapshot = Snapshot::Make(0, tensors_);
  ASSERT_TRUE(snapshot->Copy(stop_).ok());
  TemporaryDirectory before, after, again;
  const auto first = snapshot->Write(files_, before.path(), {});
  ASSERT_TRUE(first.ok());
  for (auto& data : data_) data.back() += 1;
  const auto second = snapshot->Write(files_, after.path(), {});
  EXPECT_EQ(second->digest(), first->digest());
  ASSERT_TRUE(snapshot->Copy(stop_).ok());
  const auto third = snapshot->Write(files_, again.path(), {});
  EXPECT_NE(third->digest(), first->digest());
  EXPECT_EQ(third->digest(), Xxh128Of(AsBytes(ReadShard(again.path()))));
}

TEST_F(SnapshotTest, AFaultAtAnyCallFailsTheWriteAndIsNeverRetriedByAnyMethod) {
  auto snapshot = Snapshot::Make(0, tensors_);
  ASSERT_TRUE(snapshot->Copy(stop_).ok());
  for (const auto method :
       {WriteMethod::kIoUringRegistered, WriteMethod::kDirect, WriteMethod::kBuffered}) {
    for (const int error : {EIO, ENOSPC}) {
      for (const FileOperation operation :
           {FileOperation::kCreate, FileOperation::kWrite, FileOperation::kSync,
            FileOperation::kRename, FileOperation::kSyncDirectory}) {
        TemporaryDirectory folder;
        FaultyFileSystem faulty(files_, method);
        faulty.Add({.operation = operation, .error_number = error});
        EXPECT_FALSE(snapshot->Write(faulty, folder.path(), {}).ok());
        EXPECT_EQ(faulty.Calls(operation, ""), 1);
        EXPECT_LE(faulty.Calls(FileOperation::kSync, ""), 1);
      }
    }
  }
}

TEST_F(SnapshotTest, EndsSoonOnceItIsToStop) {
  auto snapshot = Snapshot::Make(0, tensors_);
  const std::atomic<bool> stop{true};
  EXPECT_EQ(snapshot->Copy(stop).code(), StatusCode::kCancelled);
  TemporaryDirectory folder;
  EXPECT_EQ(snapshot->Write(files_, folder.path(), {.stop = &stop}).status().code(),
            StatusCode::kCancelled);
  EXPECT_FALSE(files_.Stat(JoinPath(folder.path(), ShardFileName(0)), SymbolicLinks::kRefuse).ok());
}

}  // namespace
}  // namespace troupe
