#include "worker/rank/folder_proof.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <cerrno>
#include <memory>

#include "base/check.h"
#include "base/confined/confined_file_system.h"
#include "base/failure_cause.h"
#include "base/faulty_file_system.h"
#include "base/temporary_directory.h"
#include "checkpoint/format/folder.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Paths of one host: paths below `folder` are redirected to a directory of its own, as mounts do.
class Mounted final : public FileSystem {
 public:
  Mounted(FileSystem& base, std::string folder, std::string target)
      : base_(base), folder_(std::move(folder)), target_(std::move(target)) {}
  StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path,
                                                 CreateMode mode) override {
    return base_.Create(At(path), mode);
  }
  StatusOr<std::unique_ptr<StreamingFile>> CreateStreaming(
      const std::string& path, const StreamingOptions& options) override {
    return base_.CreateStreaming(At(path), options);
  }
  StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string& path,
                                               SymbolicLinks links) override {
    return base_.Open(At(path), links);
  }
  StatusOr<std::unique_ptr<MappedFile>> Map(const std::string& path, SymbolicLinks links) override {
    return base_.Map(At(path), links);
  }
  Status Rename(const std::string& from, const std::string& to) override {
    return base_.Rename(At(from), At(to));
  }
  Status Remove(const std::string& path) override { return base_.Remove(At(path)); }
  Status RemoveDirectory(const std::string& path) override {
    return base_.RemoveDirectory(At(path));
  }
  Status MakeDirectory(const std::string& path) override { return base_.MakeDirectory(At(path)); }
  Status SyncDirectory(const std::string& path) override { return base_.SyncDirectory(At(path)); }
  StatusOr<std::vector<DirectoryEntry>> List(const std::string& path) override {
    return base_.List(At(path));
  }
  StatusOr<FileInfo> Stat(const std::string& path, SymbolicLinks links) override {
    return base_.Stat(At(path), links);
  }
  StatusOr<int64_t> FreeBytes(const std::string& path) override {
    return base_.FreeBytes(At(path));
  }

 private:
  std::string At(const std::string& path) const {
    return path.starts_with(folder_) ? target_ + path.substr(folder_.size()) : path;
  }
  FileSystem& base_;
  const std::string folder_;
  const std::string target_;
};

class FolderProofTest : public ::testing::Test {
 protected:
  FolderProofTest() {
    start_.set_job("a");
    start_.set_group_epoch(4);
    start_.mutable_spec()->mutable_checkpoint()->set_folder(folder_);
  }

  // Adds a host with one rank, alone on its worker, with `directory` mounted at the folder.
  void AddHost(const std::string& directory) {
    const int rank = start_.plan().ranks_size();
    v1::RankPlacement& placement = *start_.mutable_plan()->add_ranks();
    placement.set_rank(rank);
    placement.set_worker(fmt::format("worker-{}", rank));
    placement.set_host(fmt::format("host-{}", rank));
    hosts_.push_back(std::make_unique<Mounted>(files_, folder_, directory_.Child(directory)));
  }
  // Begins all ranks, then finishes all; returns the result of each.
  std::vector<Status> Prove(int* pauses = nullptr) {
    proofs_.clear();
    std::vector<v1::RankAddress> addresses(hosts_.size());
    std::vector<Status> outcome(hosts_.size());
    for (size_t rank = 0; rank < hosts_.size(); ++rank) {
      proofs_.push_back(
          std::make_unique<FolderProof>(*hosts_[rank], start_, static_cast<int>(rank)));
      outcome[rank] = proofs_[rank]->Begin(&addresses[rank]);
    }
    const Patience patience{&clock_, std::chrono::seconds(10), [&](Duration) {
                              if (pauses != nullptr) ++*pauses;
                              return false;
                            }};
    for (size_t rank = 0; rank < hosts_.size(); ++rank) {
      if (outcome[rank].ok()) outcome[rank] = proofs_[rank]->Finish(addresses, patience);
    }
    id_ = addresses[0].folder_id();
    return outcome;
  }

  TemporaryDirectory directory_;
  PosixFileSystem files_;
  SystemClock clock_;
  const std::string folder_ = directory_.Child("mount");
  v1::StartRanks start_;
  std::vector<std::unique_ptr<FileSystem>> hosts_;
  std::vector<std::unique_ptr<FolderProof>> proofs_;
  std::string id_;
};

TEST_F(FolderProofTest, HostsThatShareTheFolderSeeOneAnotherAtOnceAndLeaveItsIdentityAlone) {
  for (int i = 0; i < 3; ++i) AddHost("shared");
  int pauses = 0;
  for (const Status& status : Prove(&pauses)) EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(pauses, 0);
  EXPECT_EQ(id_.size(), 32u);
  proofs_[0]->Clean();
  for (const auto& proof : proofs_) proof->Withdraw();
  const auto left = files_.List(directory_.Child("shared"));
  ASSERT_EQ(left->size(), 1u);
  EXPECT_EQ((*left)[0].name, ".troupe-folder-" + id_);
}

TEST_F(FolderProofTest, AJobOfAnotherClusterOfTheSameNameKeepsItsTokens) {
  for (int i = 0; i < 2; ++i) AddHost("shared");
  const std::string other = FolderTokenName("a", 4, 1, "of-another-cluster");
  TROUPE_CHECK_OK(PutFolderToken(files_, directory_.Child("shared"), other));
  for (const Status& status : Prove()) EXPECT_TRUE(status.ok()) << status;
  proofs_[0]->Clean();
  EXPECT_TRUE(*SeesFolderToken(files_, directory_.Child("shared"), other));
  const auto left = files_.List(directory_.Child("shared"));
  EXPECT_EQ(left->size(), 2u) << "that token and the folder's identity";
}

TEST_F(FolderProofTest, TwoHostsWithFoldersOfTheirOwnBothFailAndNameEachOther) {
  AddHost("one");
  AddHost("other");
  const std::vector<Status> outcome = Prove();
  for (const Status& status : outcome) {
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
    EXPECT_EQ(AttachedCause(status), cause::kStorage);
    EXPECT_THAT(std::string(Message(status)), HasSubstr("worker-0 of host host-0"));
    EXPECT_THAT(std::string(Message(status)), HasSubstr("worker-1 of host host-1"));
  }
  proofs_[1]->Withdraw();
  EXPECT_THAT(*files_.List(directory_.Child("other")), IsEmpty());
}

TEST_F(FolderProofTest, TheOddOneOfThreeIsToBlameWhoeverReportsIt) {
  AddHost("shared");
  AddHost("local");
  AddHost("shared");
  const std::vector<Status> outcome = Prove();
  EXPECT_EQ(outcome[0].code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(proofs_[0]->blamed_worker(), "worker-1");
  EXPECT_EQ(outcome[1].code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(proofs_[1]->blamed_worker(), "") << "its own";
  EXPECT_TRUE(outcome[2].ok());
}

TEST_F(FolderProofTest, RankZeroIsToBlameWhereItIsTheOddOne) {
  AddHost("local");
  AddHost("shared");
  AddHost("shared");
  const std::vector<Status> outcome = Prove();
  EXPECT_FALSE(outcome[0].ok());
  EXPECT_EQ(proofs_[0]->blamed_worker(), "");
  EXPECT_FALSE(outcome[1].ok());
  EXPECT_EQ(proofs_[1]->blamed_worker(), "worker-0");
}

TEST_F(FolderProofTest, AHostThatLostTheMountIsDistinguishedFromOneWithoutCommits) {
  AddHost("shared");
  AddHost("local");
  TROUPE_CHECK_OK(MakeDirectories(files_, directory_.Child("shared")));
  const std::string id =
      EstablishFolderId(files_, directory_.Child("shared"), RandomFolderId().value()).value();
  start_.set_folder_id(id);
  const std::vector<Status> outcome = Prove();
  EXPECT_EQ(outcome[1].code(), StatusCode::kUnavailable) << "it may come back";
  EXPECT_EQ(AttachedCause(outcome[1]), cause::kStorage);
  EXPECT_THAT(std::string(Message(outcome[1])), HasSubstr("host-1"));
  EXPECT_EQ(files_.Stat(directory_.Child("local"), SymbolicLinks::kFollow).status().code(),
            StatusCode::kNotFound)
      << "it has written there";
}

TEST_F(FolderProofTest, AFolderThatCannotBeWrittenIsRefusedAndAFullOneIsNot) {
  FaultyFileSystem faulty(files_);
  AddHost("shared");
  hosts_[0] = std::make_unique<Mounted>(faulty, folder_, directory_.Child("shared"));
  AddHost("shared");
  faulty.Add({FileOperation::kCreate, ".start-", 1, 1, EACCES});
  EXPECT_EQ(Prove()[0].code(), StatusCode::kFailedPrecondition);
  faulty.Add({FileOperation::kCreate, ".start-", 1, 1, ENOSPC});
  for (const Status& status : Prove()) EXPECT_TRUE(status.ok()) << status;
}

TEST_F(FolderProofTest, AReadOnlyFolderMayBeWritableAgain) {
  FaultyFileSystem faulty(files_);
  AddHost("shared");
  hosts_[0] = std::make_unique<Mounted>(faulty, folder_, directory_.Child("shared"));
  faulty.Add({FileOperation::kCreate, ".start-", 1, 1, EROFS});
  const Status refused = Prove()[0];
  EXPECT_EQ(refused.code(), StatusCode::kUnavailable) << refused;
  EXPECT_EQ(AttachedCause(refused), cause::kStorage);
  EXPECT_THAT(std::string(Message(refused)), HasSubstr("which is read-only at present"));
}

TEST_F(FolderProofTest, AFullFolderIsRefusedUntilItHasAnIdentity) {
  FaultyFileSystem faulty(files_);
  AddHost("shared");
  hosts_[0] = std::make_unique<Mounted>(faulty, folder_, directory_.Child("shared"));
  AddHost("shared");
  faulty.Add({FileOperation::kCreate, "/shared/.", 1, 100, ENOSPC});
  const Status full = Prove()[0];
  EXPECT_EQ(full.code(), StatusCode::kUnavailable) << "there may be room again";
  EXPECT_EQ(AttachedCause(full), cause::kFolderFull);
  EXPECT_THAT(std::string(Message(full)), testing::StartsWith("host host-0: "))
      << "its rank and worker stand before it";
  EXPECT_THAT(std::string(Message(full)), HasSubstr("full and has no identity file yet"));
  EXPECT_EQ(id_, "");
  const std::string known =
      EstablishFolderId(files_, directory_.Child("shared"), RandomFolderId().value()).value();
  for (const Status& status : Prove()) EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(id_, known) << "one that it has needs no room";
}

TEST_F(FolderProofTest, AFolderThatLeavesItsRootIsNoFaultOfAHost) {
  TROUPE_CHECK_OK(files_.MakeDirectory(directory_.Child("root")));
  TROUPE_CHECK_OK(files_.MakeDirectory(folder_));
  ASSERT_EQ(symlink("../mount", directory_.Child("root/link").c_str()), 0);
  start_.mutable_spec()->mutable_checkpoint()->set_folder(directory_.Child("root/link"));
  AddHost("shared");
  hosts_[0] = std::make_unique<ConfinedFileSystem>(directory_.Child("root"));
  for (const std::string known : {"", "1"}) {
    start_.set_folder_id(known);
    const Status refused = Prove()[0];
    EXPECT_EQ(refused.code(), StatusCode::kPermissionDenied) << refused;
    EXPECT_EQ(AttachedCause(refused), cause::kPathOutsideRoot);
  }
  EXPECT_TRUE(files_.List(folder_)->empty());
}

TEST_F(FolderProofTest, ARootThatHasVanishedIsNamedAndNotMade) {
  const std::string root = directory_.Child("root");
  AddHost("shared");
  hosts_[0] = std::make_unique<ConfinedFileSystem>(root);
  for (const std::string& folder : {root, root + "/below"}) {
    start_.mutable_spec()->mutable_checkpoint()->set_folder(folder);
    const Status refused = Prove()[0];
    EXPECT_EQ(AttachedCause(refused), cause::kStorage) << refused;
    EXPECT_THAT(std::string(Message(refused)), HasSubstr(root));
    EXPECT_THAT(std::string(Message(refused)), HasSubstr("host-0"));
  }
  // A root that does not confine is known by its identity.
  start_.mutable_spec()->mutable_checkpoint()->set_folder(root);
  start_.set_folder_id(RandomFolderId().value());
  hosts_[0] = std::make_unique<PosixFileSystem>();
  const Status refused = Prove()[0];
  EXPECT_EQ(AttachedCause(refused), cause::kStorage) << refused;
  EXPECT_THAT(std::string(Message(refused)), HasSubstr(root));
  EXPECT_TRUE(files_.List(directory_.path())->empty()) << "something was made";
}

TEST_F(FolderProofTest, AJobWithoutAFolderHasNothingToProve) {
  start_.mutable_spec()->mutable_checkpoint()->set_folder("");
  AddHost("one");
  AddHost("other");
  for (const Status& status : Prove()) EXPECT_TRUE(status.ok());
  EXPECT_EQ(id_, "");
}

}  // namespace
}  // namespace troupe
