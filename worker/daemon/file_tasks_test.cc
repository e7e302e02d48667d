#include "worker/daemon/file_tasks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/durable_write.h"
#include "base/failpoint.h"
#include "base/temporary_directory.h"
#include "checkpoint/format/attempt.h"
#include "checkpoint/format/folder.h"
#include "checkpoint/test_checkpoint.h"
#include "worker/daemon/testing/session_probe.h"
#include "worker/session/rank_log_path.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

class FileTasksTest : public testing::Test {
 protected:
  FileTasksTest() {
    TROUPE_CHECK_OK(MakeDirectories(files_, path_));
    digest_ = WriteTestCheckpoint(files_, path_, {{"w", {1, 2, 3, 4, 5, 6, 7, 8}}}, 2);
  }
  ~FileTasksTest() override { TROUPE_CHECK_OK(ArmFailpoints("")); }

  FileTasksOptions Options(session::Config config = {}) {
    return {.config = std::move(config),
            .send = [this](AnyMessage message) { return log_.Accept(std::move(message)); },
            .on_end = [this](std::string_view, const Status& cause) { log_.AcceptEnd(cause); }};
  }
  v1::VerifyCheckpoint Request() const {
    v1::VerifyCheckpoint request;
    request.set_job("a");
    request.set_attempt(7);
    request.set_path(path_);
    request.set_digest(digest_);
    request.set_folder_id(folder_id_);
    return request;
  }
  void Ask() { ASSERT_TRUE(tasks_->Verify(Request()).ok()); }
  // Returns the next answer, which must be for the request.
  v1::CheckpointVerified Answer() {
    const v1::CheckpointVerified verified = log_.NextOf<session::CheckpointReadBack>().verified;
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
  EventLog log_;
  std::unique_ptr<FileTasks> tasks_ = std::make_unique<FileTasks>(Options());
};

TEST_F(FileTasksTest, AWholeCommitIsReportedAsWhole) {
  const v1::CheckpointVerified verified = Verify();
  EXPECT_TRUE(verified.ok()) << verified.reason();
  EXPECT_FALSE(verified.damaged());
  EXPECT_EQ(verified.reason(), "");
}

TEST_F(FileTasksTest, DamageIsDistinguishedFromWhatCannotBeRead) {
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
       true, "differ from what was written; this concerns the header, tensors w"},
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

TEST_F(FileTasksTest, InAFolderWithAnotherIdentityNothingIsReadOrDeleted) {
  folder_id_ = EstablishFolderId(files_, folder_.path(), RandomFolderId().value()).value();
  EXPECT_TRUE(Verify().ok());
  const std::string identity = folder_.Child(".troupe-folder-" + folder_id_);
  TROUPE_CHECK_OK(files_.Rename(identity, folder_.Child("hidden")));
  const v1::CheckpointVerified elsewhere = Verify();
  EXPECT_FALSE(elsewhere.ok());
  EXPECT_FALSE(elsewhere.damaged()) << "that is no proof of damage";
  EXPECT_THAT(elsewhere.reason(), HasSubstr("another disk"));
  // On a different disk an attempt would seem to be deleted already.
  v1::DeleteCheckpoint erase;
  erase.set_path(path_ + "0");
  erase.set_folder_id(folder_id_);
  tasks_->Remove(erase);
  erase.set_folder_id("");
  erase.set_attempt(1);
  tasks_->Remove(erase);
  EXPECT_EQ(log_.NextOf<session::CheckpointGone>().deleted.attempt(), 1);
  EXPECT_EQ(log_.size(), 0u);
  // If the folder is mounted, a missing commit is damage.
  TROUPE_CHECK_OK(files_.Rename(folder_.Child("hidden"), identity));
  TROUPE_CHECK_OK(files_.Rename(folder_.Child("a"), folder_.Child("b")));
  EXPECT_TRUE(Verify().damaged());
}

TEST_F(FileTasksTest, OutsideTheRootNothingIsReadOrDeleted) {
  TROUPE_CHECK_OK(files_.MakeDirectory(folder_.Child("root")));
  ASSERT_EQ(symlink("../a", folder_.Child("root/a").c_str()), 0);
  const std::string through = folder_.Child("root/a/") + path_.substr(path_.rfind('/') + 1);
  for (const std::string root : {"root", "none"}) {
    v1::VerifyCheckpoint request = Request();
    request.set_path(through);
    request.mutable_roots()->set_checkpoints(folder_.Child(root));
    ASSERT_TRUE(tasks_->Verify(request).ok());
    const v1::CheckpointVerified verified = log_.NextOf<session::CheckpointReadBack>().verified;
    EXPECT_FALSE(verified.ok());
    EXPECT_FALSE(verified.damaged()) << "that is no proof of damage";
    EXPECT_THAT(verified.reason(), HasSubstr(folder_.Child(root)));
  }
  v1::DeleteCheckpoint erase;
  erase.set_path(through);
  erase.mutable_roots()->set_checkpoints(folder_.Child("root"));
  tasks_->Remove(erase);
  // An attempt that does not exist counts as removed; requests are handled in order.
  erase.set_path(path_ + "0");
  erase.set_attempt(1);
  erase.mutable_roots()->set_checkpoints(folder_.Child("a"));
  tasks_->Remove(erase);
  EXPECT_EQ(log_.NextOf<session::CheckpointGone>().deleted.attempt(), 1);
  EXPECT_TRUE(Verify().ok()) << "it is still there";
  erase.set_path(path_);
  tasks_->Remove(erase);
  EXPECT_EQ(log_.NextOf<session::CheckpointGone>().deleted.path(), path_);
  EXPECT_FALSE(files_.Stat(path_, SymbolicLinks::kFollow).ok());
  EXPECT_EQ(log_.size(), 0u);
}

TEST_F(FileTasksTest, ThroughALinkIntoTheFolderOfAnotherJobNothingIsVerifiedOrDeleted) {
  v1::CheckpointManifest of;
  of.set_job("victim");
  const std::string name = "/step-00000020-epoch-1-attempt-8-at-1";
  const std::string victim = folder_.Child("victim");
  TROUPE_CHECK_OK(MakeDirectories(files_, victim + name));
  digest_ = WriteTestCheckpoint(files_, victim + name, {{"w", {1, 2, 3, 4}}}, 1, of);
  ASSERT_EQ(symlink(victim.c_str(), folder_.Child("thief").c_str()), 0);
  v1::VerifyCheckpoint verify = Request();
  verify.set_path(folder_.Child("thief") + name);
  ASSERT_TRUE(tasks_->Verify(verify).ok());
  const v1::CheckpointVerified verified = log_.NextOf<session::CheckpointReadBack>().verified;
  EXPECT_FALSE(verified.ok());
  EXPECT_FALSE(verified.damaged());
  EXPECT_THAT(verified.reason(), HasSubstr("is of job victim, not of a"));
  v1::DeleteCheckpoint erase;
  erase.set_job("a");
  erase.set_path(verify.path());
  tasks_->Remove(erase);
  erase.set_attempt(1);
  erase.set_path(path_);
  tasks_->Remove(erase);  // done after the other
  EXPECT_EQ(log_.NextOf<session::CheckpointGone>().deleted.attempt(), 1);
  EXPECT_TRUE(files_.Stat(JoinPath(victim + name, "manifest.json"), SymbolicLinks::kRefuse).ok());
}

TEST_F(FileTasksTest, ThroughALinkNoAttemptWithoutAManifestIsDeleted) {
  // Another job writes it, and no name in it shows that. Attempts of two jobs can have one name.
  const std::string name = "/step-00000020-epoch-1-attempt-8-at-1";
  const std::string victim = folder_.Child("victim");
  for (const std::string& folder : {victim, folder_.Child("a")}) {
    TROUPE_CHECK_OK(MakeAttemptDirectory(files_, folder + name));
    TROUPE_CHECK_OK(
        WriteFileDurably(files_, JoinPath(folder + name, ShardFileName(0)), AsBytes("x")));
  }
  ASSERT_EQ(symlink(victim.c_str(), folder_.Child("thief").c_str()), 0);
  v1::DeleteCheckpoint erase;
  erase.set_job("a");
  erase.set_path(folder_.Child("thief") + name);
  tasks_->Remove(erase);
  erase.set_attempt(1);
  erase.set_path(folder_.Child("a") + name);
  tasks_->Remove(erase);  // done after the other
  EXPECT_EQ(log_.NextOf<session::CheckpointGone>().deleted.attempt(), 1);
  EXPECT_TRUE(files_.Stat(JoinPath(victim + name, ShardFileName(0)), SymbolicLinks::kRefuse).ok());
  EXPECT_FALSE(files_.Stat(folder_.Child("a") + name, SymbolicLinks::kRefuse).ok());
}

TEST_F(FileTasksTest, LogsGoWithTheirJobAndNotWithImages) {
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
  tasks_ = std::make_unique<FileTasks>(Options(config));
  v1::DeleteImages images;
  images.set_job("a");
  tasks_->RemoveImages(images);
  v1::ForgetJob forget;
  forget.set_job("b");
  tasks_->RemoveLogs(forget);  // done after the images
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (exists(gone) && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  EXPECT_FALSE(exists(gone));
  EXPECT_TRUE(exists(kept));
}

TEST_F(FileTasksTest, ACommitThatIsAskedForAgainWhileItIsReadIsReadOnce) {
  TROUPE_CHECK_OK(ArmFailpoints("checkpoint.verify.begin=delay:200@1"));
  for (int i = 0; i < 3; ++i) Ask();
  EXPECT_TRUE(Answer().ok());
  EXPECT_EQ(log_.size(), 0u);
  EXPECT_TRUE(Verify().ok()) << "which would come third";
  EXPECT_EQ(log_.size(), 0u);
}

TEST_F(FileTasksTest, TheEndGivesUpWhatWaitsWithoutAnAnswer) {
  TROUPE_CHECK_OK(ArmFailpoints("checkpoint.verify.begin=delay:300"));
  Ask();
  tasks_.reset();
  EXPECT_EQ(log_.size(), 0u);
}

TEST_F(FileTasksTest, ATaskWithoutRoomIsDroppedWhileTheOthersAreDone) {
  FileTasksOptions options = Options();
  options.mailbox_capacity = 1;
  tasks_ = std::make_unique<FileTasks>(options);
  std::promise<void> entered, released, second, fourth;
  v1::TraceRequest request;
  request.set_job("a");
  tasks_->ReadTrace(request, 0, [&](std::vector<v1::WorkerMessage> answer) {
    EXPECT_EQ(answer.size(), 1u);
    entered.set_value();
    released.get_future().wait();
    return OkStatus();
  });
  entered.get_future().wait();
  tasks_->ReadTrace(request, 1, [&](std::vector<v1::WorkerMessage>) {
    second.set_value();
    return OkStatus();
  });
  ::testing::internal::CaptureStderr();
  tasks_->ReadTrace(request, 2, [](std::vector<v1::WorkerMessage>) {
    ADD_FAILURE() << "there was no room for it";
    return OkStatus();
  });
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("a trace of a is not read"));
  released.set_value();
  second.get_future().wait();
  tasks_->ReadTrace(request, 3, [&](std::vector<v1::WorkerMessage>) {
    fourth.set_value();
    return OkStatus();
  });
  fourth.get_future().wait();
  tasks_.reset();  // it uses the promises
}

TEST_F(FileTasksTest, ARemovalWithoutRoomIsDroppedAndMayBeAskedForAgain) {
  FileTasksOptions options = Options();
  options.mailbox_capacity = 1;
  std::promise<void> entered, released;
  // The remover handles the first removal until `released`.
  options.send = [&, is_first = true](AnyMessage message) mutable {
    if (std::exchange(is_first, false)) {
      entered.set_value();
      released.get_future().wait();
    }
    return log_.Accept(std::move(message));
  };
  tasks_ = std::make_unique<FileTasks>(options);
  const auto remove = [&](const std::string& path, int attempt) {
    v1::DeleteCheckpoint request;
    request.set_path(path);
    request.set_attempt(attempt);
    tasks_->Remove(request);
  };
  const auto removed = [&] { return log_.NextOf<session::CheckpointGone>().deleted.attempt(); };
  const auto exists = [&] { return files_.Stat(path_, SymbolicLinks::kFollow).ok(); };
  remove(path_ + "0", 1);
  entered.get_future().wait();
  remove(path_ + "1", 2);
  ::testing::internal::CaptureStderr();
  remove(path_, 3);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr(fmt::format("checkpoint {} stays", path_)));
  released.set_value();
  EXPECT_EQ(removed(), 1);
  EXPECT_EQ(removed(), 2);
  EXPECT_TRUE(exists());
  remove(path_, 3);
  EXPECT_EQ(removed(), 3);
  EXPECT_FALSE(exists());
  EXPECT_EQ(log_.size(), 0u);
  tasks_.reset();  // it uses the promises
}

TEST_F(FileTasksTest, AReadingWithoutRoomIsRefusedAndMayBeAskedForAgain) {
  FileTasksOptions options = Options();
  options.mailbox_capacity = 0;
  tasks_ = std::make_unique<FileTasks>(options);
  for (int i = 0; i < 2; ++i) {
    const Status refused = tasks_->Verify(Request());
    EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
    const v1::CheckpointVerified answer = ReadBackAnswer(Request(), refused).verified;
    EXPECT_FALSE(answer.ok());
    EXPECT_FALSE(answer.damaged()) << "that is no proof of damage";
  }
}

TEST_F(FileTasksTest, ARemovalThatIsAskedForAgainWhileItWaitsTakesOnePlaceAndIsDoneOnce) {
  FileTasksOptions options = Options();
  options.mailbox_capacity = 1;
  std::promise<void> entered, released;
  options.send = [&, is_first = true](AnyMessage message) mutable {
    if (std::exchange(is_first, false)) {
      entered.set_value();
      released.get_future().wait();
    }
    return log_.Accept(std::move(message));
  };
  tasks_ = std::make_unique<FileTasks>(options);
  v1::DeleteCheckpoint request;
  request.set_path(path_ + "0");
  tasks_->Remove(request);
  entered.get_future().wait();
  request.set_path(path_);
  ::testing::internal::CaptureStderr();
  for (int time = 0; time < 250; ++time) {
    request.set_none_writes(time == 249);
    tasks_->Remove(request);
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  released.set_value();
  EXPECT_FALSE(log_.NextOf<session::CheckpointGone>().deleted.none_writes());
  EXPECT_TRUE(log_.NextOf<session::CheckpointGone>().deleted.none_writes()) << "the newest";
  tasks_.reset();
  EXPECT_EQ(log_.size(), 0u);
}

}  // namespace
}  // namespace troupe
