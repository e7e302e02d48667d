// Checkpoints beneath a root: all that is done with one works there, and nothing leaves the root.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "base/check.h"
#include "base/confined/confined_file_system.h"
#include "base/confined/path_root.h"
#include "base/temporary_directory.h"
#include "checkpoint/format/attempt.h"
#include "checkpoint/format/folder.h"
#include "checkpoint/format/manifest.h"
#include "checkpoint/read/survey.h"
#include "checkpoint/read/verify.h"
#include "checkpoint/test_checkpoint.h"
#include "checkpoint/write/shard_writer.h"

namespace troupe {
namespace {

constexpr char kAttempt[] = "step-00000010-epoch-1-attempt-1-at-0";

class ConfinedCheckpointTest : public ::testing::Test {
 protected:
  ConfinedCheckpointTest() {
    TROUPE_CHECK_OK(posix_.MakeDirectory(root_));
    TROUPE_CHECK_OK(posix_.MakeDirectory(outside_));
    TROUPE_CHECK(symlink("../outside", (root_ + "/escape").c_str()) == 0);
    TROUPE_CHECK(symlink("disk", (root_ + "/link").c_str()) == 0);
  }

  const TemporaryDirectory folder_;
  const std::string root_ = folder_.Child("root");
  const std::string outside_ = folder_.Child("outside");
  PosixFileSystem posix_;
  ConfinedFileSystem files_{folder_.Child("root")};
};

TEST_F(ConfinedCheckpointTest, BeneathTheRootOneIsWrittenReadAndDeletedAlsoThroughALink) {
  TROUPE_CHECK_OK(files_.MakeDirectory(root_ + "/disk"));
  const std::string path = JoinPath(root_ + "/link/a", kAttempt);
  TROUPE_CHECK_OK(MakeAttemptDirectory(files_, path));
  const std::string digest =
      WriteTestCheckpoint(files_, path, {{"w", {1, 2, 3, 4, 5, 6, 7, 8}}}, 2);
  EXPECT_TRUE(EstablishFolderId(files_, root_ + "/link", RandomFolderId().value()).ok());
  EXPECT_TRUE(VerifyCheckpoint(files_, path, digest).ToStatus().ok());
  EXPECT_TRUE(posix_.Stat(root_ + "/disk/a", SymbolicLinks::kRefuse).ok());
  EXPECT_TRUE(SurveyCheckpoints(files_, root_ + "/disk").ok());
  EXPECT_TRUE(DeleteAttempt(files_, path).ok());
  EXPECT_EQ(posix_.Stat(path, SymbolicLinks::kRefuse).status().code(), StatusCode::kNotFound);
}

TEST_F(ConfinedCheckpointTest, OutsideOfItNothingIsMadeReadOrDeleted) {
  const std::string written = JoinPath(outside_ + "/a", kAttempt);
  TROUPE_CHECK_OK(MakeAttemptDirectory(posix_, written));
  const std::string digest =
      WriteTestCheckpoint(posix_, written, {{"w", {1, 2, 3, 4, 5, 6, 7, 8}}}, 2);
  const auto manifest = ReadManifest(posix_, written, digest);
  ASSERT_TRUE(manifest.ok());
  for (const std::string& folder : {root_ + "/escape", root_ + "/../outside", outside_}) {
    SCOPED_TRACE(folder);
    const std::string path = JoinPath(folder + "/a", kAttempt);
    EXPECT_TRUE(LeavesRoot(MakeAttemptDirectory(files_, path)));
    EXPECT_TRUE(LeavesRoot(MakeAttemptDirectory(files_, JoinPath(folder + "/b", kAttempt))));
    EXPECT_TRUE(LeavesRoot(WriteShard(files_, path, 5, {}).status()));
    EXPECT_TRUE(LeavesRoot(WriteManifest(files_, path, *manifest).status()));
    EXPECT_TRUE(LeavesRoot(ReadManifest(files_, path, digest).status()));
    EXPECT_TRUE(LeavesRoot(DeleteAttempt(files_, path)));
    EXPECT_TRUE(LeavesRoot(SurveyCheckpoints(files_, folder).status()));
    EXPECT_TRUE(LeavesRoot(CheckFolderId(files_, folder, "1")));
    EXPECT_TRUE(LeavesRoot(PutFolderToken(files_, folder, "token")));
    const Status verified = VerifyCheckpoint(files_, path, digest).ToStatus();
    EXPECT_EQ(verified.code(), StatusCode::kPermissionDenied) << "that is no proof of damage";
  }
  EXPECT_TRUE(VerifyCheckpoint(posix_, written, digest).ToStatus().ok()) << "it is as it was";
  EXPECT_EQ(posix_.List(outside_).value().size(), 1u);
}

TEST_F(ConfinedCheckpointTest, AMissingRootIsNoDamage) {
  ConfinedFileSystem missing(folder_.Child("none"));
  const std::string path = JoinPath(folder_.Child("none/a"), kAttempt);
  const Status verified = VerifyCheckpoint(missing, path, "sha256:1").ToStatus();
  EXPECT_EQ(verified.code(), StatusCode::kFailedPrecondition) << verified;
}

}  // namespace
}  // namespace troupe
