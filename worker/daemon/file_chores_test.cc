#include "worker/daemon/file_chores.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "base/check.h"
#include "base/failpoint.h"
#include "base/temporary_directory.h"
#include "checkpoint/format/attempt.h"
#include "checkpoint/format/folder.h"
#include "checkpoint/test_checkpoint.h"
#include "worker/session/rank_log_path.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

class FileChoresTest : public testing::Test {
 protected:
  FileChoresTest() {
    TROUPE_CHECK_OK(MakeDirectories(files_, path_));
    digest_ = WriteTestCheckpoint(files_, path_, {{"w", {1, 2, 3, 4, 5, 6, 7, 8}}}, 2);
  }
  ~FileChoresTest() override { TROUPE_CHECK_OK(ArmFailpoints("")); }

  void Ask() {
    v1::VerifyCheckpoint request;
    request.set_job("a");
    request.set_attempt(7);
    request.set_path(path_);
    request.set_digest(digest_);
    request.set_folder_id(folder_id_);
    chores_->Verify(request);
  }
  // Returns the next answer, which must be for the request.
  v1::CheckpointVerified Answer() {
    while (answers_.empty()) {
      pollfd polled{events_->descriptor(), POLLIN, 0};
      if (poll(&polled, 1, 30'000) != 1) {
        ADD_FAILURE() << "no answer";
        return {};
      }
      for (QueuedEvent& event : events_->TakeAll()) answers_.push_back(std::move(event));
    }
    auto* const read = std::get_if<session::CheckpointReadBack>(&answers_.front());
    if (read == nullptr) {
      ADD_FAILURE() << "another event";
      return {};
    }
    const v1::CheckpointVerified verified = read->verified;
    answers_.pop_front();
    EXPECT_EQ(verified.job(), "a");
    EXPECT_EQ(verified.attempt(), 7);
    EXPECT_EQ(verified.path(), path_);
    return verified;
  }
  v1::CheckpointVerified Verify() {
    Ask();
    return Answer();
  }

  const TemporaryDirectory folder_;
  const std::string path_ = folder_.Child("a/step-00000010-epoch-1-attempt-7-at-1");
  PosixFileSystem files_;
  std::string digest_;
  std::string folder_id_;
  const std::shared_ptr<EventQueue> events_ = std::make_shared<EventQueue>();
  std::deque<QueuedEvent> answers_;
  std::unique_ptr<FileChores> chores_ = std::make_unique<FileChores>(session::Config(), events_);
};

TEST_F(FileChoresTest, ACommitThatIsWholeIsSaidToBe) {
  const v1::CheckpointVerified verified = Verify();
  EXPECT_TRUE(verified.ok()) << verified.reason();
  EXPECT_FALSE(verified.damaged());
  EXPECT_EQ(verified.reason(), "");
}

TEST_F(FileChoresTest, DamageIsToldApartFromWhatCannotBeRead) {
  struct Case {
    std::string what;
    std::function<void()> spoil;
    bool damaged;
    std::string reason;
  };
  const std::string shard = JoinPath(path_, ShardFileName(1));
  const Case cases[] = {
      {"error", [] { TROUPE_CHECK_OK(ArmFailpoints("checkpoint.verify.begin=error")); }, false,
       "failpoint"},
      {"bit",
       [&] {
         TROUPE_CHECK_OK(ArmFailpoints(""));
         ChangeFile(files_, shard, [](std::string& bytes) { bytes.back() ^= 1; });
       },
       true, "rank-00001.safetensors: the header, tensors w: bytes"},
      {"missing", [&] { TROUPE_CHECK_OK(files_.Remove(shard)); }, true, "No such file"},
      {"manifest", [&] { digest_ += "0"; }, true, "the committed one"},
      {"folder",
       [&] { TROUPE_CHECK_OK(files_.Rename(folder_.Child("a"), folder_.Child("elsewhere"))); },
       false, "No such file"},
  };
  for (const Case& one : cases) {
    one.spoil();
    const v1::CheckpointVerified verified = Verify();
    EXPECT_FALSE(verified.ok()) << one.what;
    EXPECT_EQ(verified.damaged(), one.damaged) << one.what;
    EXPECT_THAT(verified.reason(), HasSubstr(one.reason)) << one.what;
  }
}

TEST_F(FileChoresTest, InAFolderWithAnotherIdentityNothingIsReadOrDeleted) {
  folder_id_ = EstablishFolderId(files_, folder_.path(), RandomFolderId().value()).value();
  EXPECT_TRUE(Verify().ok());
  const std::string identity = folder_.Child(".troupe-folder-" + folder_id_);
  TROUPE_CHECK_OK(files_.Rename(identity, folder_.Child("hidden")));
  const v1::CheckpointVerified elsewhere = Verify();
  EXPECT_FALSE(elsewhere.ok());
  EXPECT_FALSE(elsewhere.damaged()) << "that says nothing about it";
  EXPECT_THAT(elsewhere.reason(), HasSubstr("another disk"));
  // On a different disk an attempt would seem to be deleted already.
  v1::DeleteCheckpoint erase;
  erase.set_path(path_ + "0");
  erase.set_folder_id(folder_id_);
  chores_->Remove(erase);
  erase.set_folder_id("");
  erase.set_attempt(1);
  chores_->Remove(erase);
  pollfd polled{events_->descriptor(), POLLIN, 0};
  ASSERT_EQ(poll(&polled, 1, 30'000), 1);
  const auto gone = events_->TakeAll();
  ASSERT_EQ(gone.size(), 1u);
  EXPECT_EQ(std::get<session::CheckpointGone>(gone[0]).deleted.attempt(), 1);
  // If the folder is mounted, a missing commit is damage.
  TROUPE_CHECK_OK(files_.Rename(folder_.Child("hidden"), identity));
  TROUPE_CHECK_OK(files_.Rename(folder_.Child("a"), folder_.Child("b")));
  EXPECT_TRUE(Verify().damaged());
}

TEST_F(FileChoresTest, LogsGoWithTheirJobAndNotWithImages) {
  session::Config config;
  config.log_directory = folder_.Child("logs");
  config.image_directory = folder_.Child("images");
  config.identity.set_name("worker-0");
  const std::string kept = session::RankLogPath(config, "a", 0);
  const std::string gone = session::RankLogPath(config, "b", 0);
  for (const std::string& log : {kept, gone}) {
    TROUPE_CHECK_OK(MakeDirectories(files_, ParentDirectory(log)));
    TROUPE_CHECK_OK(WriteFileDurably(files_, log, AsBytes("step 1\n")));
  }
  const auto exists = [&](const std::string& log) {
    return files_.Stat(log, SymbolicLinks::kFollow).ok();
  };
  chores_ = std::make_unique<FileChores>(config, events_);
  v1::DeleteImages images;
  images.set_job("a");
  chores_->RemoveImages(images);
  v1::ForgetJob forget;
  forget.set_job("b");
  chores_->RemoveLogs(forget);  // done after the images
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (exists(gone) && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  EXPECT_FALSE(exists(gone));
  EXPECT_TRUE(exists(kept));
}

TEST_F(FileChoresTest, ACommitThatIsAskedForAgainWhileItIsReadIsReadOnce) {
  TROUPE_CHECK_OK(ArmFailpoints("checkpoint.verify.begin=delay:200@1"));
  for (int i = 0; i < 3; ++i) Ask();
  EXPECT_TRUE(Answer().ok());
  EXPECT_TRUE(answers_.empty());
  EXPECT_TRUE(Verify().ok()) << "which would come third";
  EXPECT_TRUE(answers_.empty());
}

TEST_F(FileChoresTest, TheEndGivesUpWhatWaitsWithoutAnAnswer) {
  TROUPE_CHECK_OK(ArmFailpoints("checkpoint.verify.begin=delay:300"));
  Ask();
  chores_.reset();
  EXPECT_TRUE(events_->TakeAll().empty());
}

}  // namespace
}  // namespace troupe
