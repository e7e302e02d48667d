#include "checkpoint/format/folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "base/aligned_memory.h"
#include "base/check.h"
#include "base/faulty_file_system.h"
#include "base/temporary_directory.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

class FolderTest : public ::testing::Test {
 protected:
  std::vector<std::string> Names() {
    std::vector<std::string> names;
    const std::vector<DirectoryEntry> entries = files_.List(path_).value();
    for (const DirectoryEntry& entry : entries) names.push_back(entry.name);
    return names;
  }

  TemporaryDirectory directory_;
  PosixFileSystem files_;
  const std::string path_ = directory_.Child("checkpoints");
};

TEST_F(FolderTest, IsMadeWithAnIdentityThatIsFoundAgain) {
  EXPECT_EQ(FindFolderId(files_, path_).value(), "");
  const std::string fresh = RandomFolderId().value();
  EXPECT_EQ(fresh.size(), 32u);
  EXPECT_NE(fresh, RandomFolderId().value());
  EXPECT_EQ(EstablishFolderId(files_, path_, fresh).value(), fresh);
  EXPECT_EQ(FindFolderId(files_, path_).value(), fresh);
  EXPECT_EQ(EstablishFolderId(files_, path_, RandomFolderId().value()).value(), fresh)
      << "jobs of one folder share its identity";
  EXPECT_TRUE(CheckFolderId(files_, path_, fresh).ok());
  EXPECT_TRUE(CheckFolderId(files_, path_, "").ok());
  EXPECT_TRUE(files_.Stat(FolderIdPath(path_, fresh), SymbolicLinks::kRefuse).ok());
  EXPECT_EQ(SplitFolderIdPath(FolderIdPath(path_, fresh)).folder, path_);
  EXPECT_EQ(SplitFolderIdPath(FolderIdPath(path_, fresh)).id, fresh);
  EXPECT_EQ(SplitFolderIdPath(FolderIdPath(path_, "")).folder, path_);
  EXPECT_EQ(SplitFolderIdPath(FolderIdPath(path_, "")).id, "");
}

TEST_F(FolderTest, OfAnotherDiskIsUnavailableNotDamaged) {
  const std::string id = EstablishFolderId(files_, path_, RandomFolderId().value()).value();
  const std::string other = directory_.Child("local");
  Status found = CheckFolderId(files_, other, id);
  EXPECT_EQ(found.code(), StatusCode::kUnavailable);
  EXPECT_THAT(std::string(Message(found)), HasSubstr(other));
  TROUPE_CHECK_OK(MakeDirectories(files_, other));
  EXPECT_EQ(CheckFolderId(files_, other, id).code(), StatusCode::kUnavailable);
  EXPECT_TRUE(EstablishFolderId(files_, other, RandomFolderId().value()).ok());
  EXPECT_EQ(CheckFolderId(files_, other, id).code(), StatusCode::kUnavailable);
}

TEST_F(FolderTest, ThatTwoJobsNameAtOnceHasBothIdentities) {
  const std::string a = RandomFolderId().value();
  const std::string b = RandomFolderId().value();
  // Two jobs each found no identity before either created its own.
  TROUPE_CHECK_OK(EstablishFolderId(files_, path_, a).status());
  TROUPE_CHECK_OK(files_.Create(path_ + "/.troupe-folder-" + b, CreateMode::kExclusive).status());
  EXPECT_TRUE(CheckFolderId(files_, path_, a).ok());
  EXPECT_TRUE(CheckFolderId(files_, path_, b).ok());
}

TEST_F(FolderTest, ErrorsOfTheDiskAreNoAnswer) {
  const std::string id = EstablishFolderId(files_, path_, RandomFolderId().value()).value();
  FaultyFileSystem faulty(files_);
  faulty.Add({FileOperation::kStat, ".troupe-folder-", 1, 1, EIO});
  const Status found = CheckFolderId(faulty, path_, id);
  EXPECT_FALSE(found.ok());
  EXPECT_THAT(std::string(Message(found)), testing::Not(HasSubstr("another disk")));
}

TEST_F(FolderTest, TokensAreSeenAndThoseOfTheListAndTheJobRemoved) {
  const std::string token = FolderTokenName("a", 2, 3, "r");
  EXPECT_EQ(token, ".start-a-epoch-2-rank-3-r");
  EXPECT_FALSE(SeesFolderToken(files_, path_, token).value());
  TROUPE_CHECK_OK(PutFolderToken(files_, path_, token));
  TROUPE_CHECK_OK(PutFolderToken(files_, path_, token));
  EXPECT_TRUE(SeesFolderToken(files_, path_, token).value());
  const std::string of_another_cluster = FolderTokenName("a", 2, 3, "q");
  const std::string of_another_job = FolderTokenName("a-epoch", 1, 0, "q");
  const std::string absent = FolderTokenName("a", 2, 4, "r");
  TROUPE_CHECK_OK(PutFolderToken(files_, path_, of_another_cluster));
  TROUPE_CHECK_OK(PutFolderToken(files_, path_, of_another_job));
  TROUPE_CHECK_OK(
      RemoveFolderTokens(files_, path_, "a", {absent, token, of_another_job, token + "/../x"}));
  EXPECT_THAT(Names(), testing::ElementsAre(of_another_cluster, of_another_job));
}

TEST(SaysFolderIsFull, OfADiskOrAQuotaWithoutRoomAndNotOfMemory) {
  for (const int error_number : {ENOSPC, EDQUOT})
    EXPECT_TRUE(SaysFolderIsFull(Annotate(ErrnoStatus(error_number, "write /ck/x"), "manifest")));
  EXPECT_FALSE(SaysFolderIsFull(AlignedMemory::Make(int64_t{1} << 60).status()));
  EXPECT_FALSE(SaysFolderIsFull(ErrnoStatus(EIO, "write /ck/x")));
  EXPECT_FALSE(SaysFolderIsFull(OkStatus()));
}

TEST(SaysFolderIsReadOnly, OfADiskAndNotOfAMissingRight) {
  EXPECT_TRUE(SaysFolderIsReadOnly(Annotate(ErrnoStatus(EROFS, "mkdir /ck"), "checkpoint.folder")));
  for (const int error_number : {EACCES, EPERM, ENOSPC})
    EXPECT_FALSE(SaysFolderIsReadOnly(ErrnoStatus(error_number, "mkdir /ck"))) << error_number;
  EXPECT_FALSE(SaysFolderIsReadOnly(OkStatus()));
}

TEST(FolderOfAttempt, IsTwoAbove) {
  EXPECT_EQ(FolderOfAttempt("/ck/a/step-00000010-epoch-1-attempt-1-at-0"), "/ck");
}

}  // namespace
}  // namespace troupe
