#include "worker/rank/checkpoint_saver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <numeric>
#include <semaphore>

#include "base/aligned_memory.h"
#include "base/check.h"
#include "base/faulty_file_system.h"
#include "base/temporary_directory.h"
#include "checkpoint/format/attempt.h"
#include "checkpoint/format/digest.h"

namespace troupe {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

constexpr Duration kLimit = std::chrono::seconds(10);

// A file system that makes directories only when the test permits it, so that a save stays in
// flight.
class GatedFileSystem final : public FileSystem {
 public:
  explicit GatedFileSystem(FileSystem& base) : base_(base) {}
  void Open() { gate_.release(); }

  Status MakeDirectory(const std::string& path) override {
    if (!gate_.try_acquire_for(kLimit)) return DeadlineExceeded("the gate stayed shut");
    return base_.MakeDirectory(path);
  }
  StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path,
                                                 CreateMode mode) override {
    return base_.Create(path, mode);
  }
  StatusOr<std::unique_ptr<StreamingFile>> CreateStreaming(
      const std::string& path, const StreamingOptions& options) override {
    return base_.CreateStreaming(path, options);
  }
  StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string& path,
                                               SymbolicLinks links) override {
    return base_.Open(path, links);
  }
  StatusOr<std::unique_ptr<MappedFile>> Map(const std::string& path, SymbolicLinks links) override {
    return base_.Map(path, links);
  }
  Status Rename(const std::string& from, const std::string& to) override {
    return base_.Rename(from, to);
  }
  Status Remove(const std::string& path) override { return base_.Remove(path); }
  Status RemoveDirectory(const std::string& path) override { return base_.RemoveDirectory(path); }
  Status SyncDirectory(const std::string& path) override { return base_.SyncDirectory(path); }
  StatusOr<std::vector<DirectoryEntry>> List(const std::string& path) override {
    return base_.List(path);
  }
  StatusOr<FileInfo> Stat(const std::string& path, SymbolicLinks links) override {
    return base_.Stat(path, links);
  }
  StatusOr<int64_t> FreeBytes(const std::string& path) override { return base_.FreeBytes(path); }

 private:
  FileSystem& base_;
  std::counting_semaphore<> gate_{0};
};

class CheckpointSaverTest : public ::testing::Test {
 protected:
  CheckpointSaverTest() : weights_(100'000) { std::iota(weights_.begin(), weights_.end(), 0.f); }

  std::unique_ptr<CheckpointSaver> MakeSaver(FileSystem& files, bool async) {
    CheckpointSaverOptions options;
    options.files = &files;
    options.clock = &clock_;
    options.async = async;
    options.vote.set_job("a");
    options.vote.set_group_epoch(7);
    options.vote.mutable_state()->set_seed(5);
    options.samples_per_step = 16;
    options.vote_bytes_max = vote_bytes_max_;
    options.send = [this](v1::WorkerMessage message) {
      std::lock_guard lock(mutex_);
      sent_.push_back(std::move(message));
    };
    ShardTensor tensor{{"w", "F32", {100'000}, {{0}, {100'000}}}, {}, copy_};
    if (!copy_) tensor.data = std::as_bytes(std::span(weights_));
    auto saver = CheckpointSaver::Make(std::move(options), {std::move(tensor)});
    TROUPE_CHECK_OK(saver.status());
    return *std::move(saver);
  }

  v1::CheckpointIntent Intent(int64_t attempt) {
    v1::CheckpointIntent intent;
    intent.set_attempt(attempt);
    intent.set_path(folder_.Child(AttemptName(attempt, 7, attempt, 0)));
    return intent;
  }

  std::vector<v1::WorkerMessage> sent() {
    std::lock_guard lock(mutex_);
    return sent_;
  }

  std::string DigestOnDisk(int64_t attempt) {
    const auto text = ReadFile(files_, JoinPath(Intent(attempt).path(), ShardFileName(0)), 1 << 24,
                               SymbolicLinks::kRefuse);
    return text.ok() ? Xxh128Of(AsBytes(*text)) : ToString(text.status());
  }

  size_t vote_bytes_max_ = kCheckpointMessageBytesMax;
  std::function<Status(int64_t, std::span<std::byte>)> copy_;  // empty: weights_ are read in place
  std::vector<float> weights_;
  TemporaryDirectory folder_;
  PosixFileSystem files_;
  SystemClock clock_;
  std::mutex mutex_;
  std::vector<v1::WorkerMessage> sent_;
};

TEST_F(CheckpointSaverTest, VotesForWhatIsOnTheDiskInBothModes) {
  for (const bool async : {false, true}) {
    const auto saver = MakeSaver(files_, async);
    const int64_t attempt = async ? 2 : 1;
    saver->StartSave(Intent(attempt), 40);
    saver->WaitForCopy();
    ASSERT_TRUE(saver->WaitUntilIdle(kLimit));
    ASSERT_EQ(sent().size(), static_cast<size_t>(attempt));
    const v1::ShardDone done = sent().back().shard_done();
    EXPECT_EQ(done.job(), "a");
    EXPECT_EQ(done.group_epoch(), 7u);
    EXPECT_EQ(done.attempt(), attempt);
    EXPECT_EQ(done.step(), 40);
    EXPECT_EQ(done.state().step(), 40);
    EXPECT_EQ(done.state().consumed_samples(), 640);
    EXPECT_EQ(done.state().seed(), 5u);
    EXPECT_EQ(done.shards(0).digest(), DigestOnDisk(attempt));
    EXPECT_FALSE(done.write_method().empty());
    EXPECT_GE(done.write_seconds(), done.stall_seconds());
  }
  // Both saves have the same state.
  EXPECT_EQ(DigestOnDisk(1), DigestOnDisk(2));
}

TEST_F(CheckpointSaverTest, AVoteThatNoSessionTakesInIsAFailureThatNamesItsBytes) {
  vote_bytes_max_ = 100;
  const auto saver = MakeSaver(files_, false);
  saver->StartSave(Intent(1), 1);
  ASSERT_TRUE(saver->WaitUntilIdle(kLimit));
  ASSERT_EQ(sent().size(), 1u);
  ASSERT_TRUE(sent()[0].has_shard_failed());
  EXPECT_EQ(sent()[0].shard_failed().attempt(), 1);
  EXPECT_THAT(sent()[0].shard_failed().reason(),
              ContainsRegex("list of its 1 tensors has [0-9]+ bytes, more than 100"));
}

TEST_F(CheckpointSaverTest, TheStateMayChangeOnceCopiedWhileTheWriteIsInFlight) {
  GatedFileSystem gated(files_);
  const auto saver = MakeSaver(gated, true);
  saver->StartSave(Intent(1), 1);
  saver->WaitForCopy();
  EXPECT_TRUE(saver->busy());
  EXPECT_EQ(saver->attempt_in_flight(), 1);
  weights_[0] = 17;
  gated.Open();
  ASSERT_TRUE(saver->WaitUntilIdle(kLimit));
  saver->StartSave(Intent(2), 2);
  saver->WaitForCopy();
  gated.Open();
  ASSERT_TRUE(saver->WaitUntilIdle(kLimit));
  ASSERT_EQ(sent().size(), 2u);
  EXPECT_EQ(sent()[0].shard_done().shards(0).digest(), DigestOnDisk(1));
  EXPECT_NE(DigestOnDisk(1), DigestOnDisk(2));
}

TEST_F(CheckpointSaverTest, AnotherSaveWaitsForTheOneInFlightAndItsStallIsCounted) {
  GatedFileSystem gated(files_);
  const auto saver = MakeSaver(gated, true);
  saver->StartSave(Intent(1), 1);
  std::thread opener([&] {
    gated.Open();
    gated.Open();
  });
  saver->StartSave(Intent(2), 1);
  EXPECT_EQ(saver->attempt_in_flight(), 2);
  EXPECT_EQ(sent().at(0).shard_done().attempt(), 1);
  ASSERT_TRUE(saver->WaitUntilIdle(kLimit));
  opener.join();
  ASSERT_EQ(sent().size(), 2u);
  EXPECT_GT(sent()[1].shard_done().stall_seconds(), 0);
}

TEST_F(CheckpointSaverTest, AFaultInTheBackgroundIsReportedAndTheNextSaveSucceeds) {
  int64_t attempt = 0;
  for (const int error : {EIO, ENOSPC, EDQUOT}) {
    for (const FileOperation operation :
         {FileOperation::kMakeDirectory, FileOperation::kCreate, FileOperation::kWrite,
          FileOperation::kSync, FileOperation::kRename}) {
      FaultyFileSystem faulty(files_);
      const auto saver = MakeSaver(faulty, true);
      faulty.Add({.operation = operation, .error_number = error});
      saver->StartSave(Intent(++attempt), 1);
      saver->WaitForCopy();
      ASSERT_TRUE(saver->WaitUntilIdle(kLimit));
      ASSERT_TRUE(sent().back().has_shard_failed());
      EXPECT_EQ(sent().back().shard_failed().attempt(), attempt);
      EXPECT_EQ(sent().back().shard_failed().group_epoch(), 7u);
      EXPECT_THAT(sent().back().shard_failed().reason(), HasSubstr("injected fault"));
      EXPECT_EQ(sent().back().shard_failed().cause(), error == EIO ? "" : "FOLDER_FULL");
      saver->StartSave(Intent(++attempt), 2);
      ASSERT_TRUE(saver->WaitUntilIdle(kLimit));
      EXPECT_EQ(sent().back().shard_done().attempt(), attempt);
    }
  }
}

TEST_F(CheckpointSaverTest, MemoryThatCannotBeAllocatedIsNoFullFolder) {
  copy_ = [](int64_t, std::span<std::byte>) {
    return AlignedMemory::Make(int64_t{1} << 60).status();  // more than any address space has
  };
  for (const bool async : {false, true}) {
    const auto saver = MakeSaver(files_, async);
    saver->StartSave(Intent(async ? 2 : 1), 1);
    saver->WaitForCopy();
    ASSERT_TRUE(saver->WaitUntilIdle(kLimit));
    ASSERT_TRUE(sent().back().has_shard_failed());
    EXPECT_THAT(sent().back().shard_failed().reason(),
                ContainsRegex("RESOURCE_EXHAUSTED: .*cannot allocate [0-9]+ bytes of memory"));
    EXPECT_EQ(sent().back().shard_failed().cause(), "") << "it counts against the host";
  }
}

TEST_F(CheckpointSaverTest, AnIntentThatDidNotArriveFailsTheAttempt) {
  v1::CheckpointIntent unknown;
  unknown.set_attempt(3);
  for (const bool async : {false, true}) {
    const auto saver = MakeSaver(files_, async);
    saver->StartSave(unknown, 1);
    ASSERT_TRUE(saver->WaitUntilIdle(kLimit));
    EXPECT_EQ(sent().back().shard_failed().attempt(), 3);
  }
}

TEST_F(CheckpointSaverTest, StoppedInFlightItEndsWithoutAVoteAndTakesNoMore) {
  GatedFileSystem gated(files_);
  const auto saver = MakeSaver(gated, true);
  saver->StartSave(Intent(1), 1);
  saver->WaitForCopy();
  saver->Stop();
  saver->WaitForCopy();
  EXPECT_FALSE(saver->WaitUntilIdle(Duration::zero()));
  gated.Open();
  EXPECT_TRUE(saver->WaitUntilIdle(kLimit));
  saver->StartSave(Intent(2), 2);
  EXPECT_FALSE(saver->busy());
  EXPECT_TRUE(sent().empty());
}

TEST_F(CheckpointSaverTest, AStepThreadThatWaitsForAnotherSaveIsSetFreeByAStop) {
  GatedFileSystem gated(files_);
  const auto saver = MakeSaver(gated, true);
  saver->StartSave(Intent(1), 1);
  std::thread stopper([&] { saver->Stop(); });
  saver->StartSave(Intent(2), 1);
  stopper.join();
  gated.Open();
  EXPECT_TRUE(saver->WaitUntilIdle(kLimit));
  EXPECT_TRUE(sent().empty());
}

}  // namespace
}  // namespace troupe
