#include "cli/cluster/cluster_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/temporary_directory.h"
#include "base/text_file.h"
#include "cli/cluster/cluster_settings.h"
#include "cli/cluster/host_id.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

TEST(StateFolderTest, IsThatOfTheDesktopStandard) {
  EXPECT_EQ(StateFolderOf("/state", "/home/ann"), "/state/troupe");
  EXPECT_EQ(StateFolderOf(std::nullopt, "/home/ann"), "/home/ann/.local/state/troupe");
  // A relative path is invalid there, and to be ignored.
  EXPECT_EQ(StateFolderOf("state", "/home/ann"), "/home/ann/.local/state/troupe");
  EXPECT_EQ(StateFolderOf(std::nullopt, std::nullopt), std::nullopt);
  EXPECT_EQ(StateFolderOf(std::nullopt, "home"), std::nullopt);
}

TEST(ClusterIndexTest, AFolderMovesToTheFront) {
  EXPECT_EQ(IndexWith("/a", ""), "/a\n");
  EXPECT_EQ(IndexWith("/b", "/a\n"), "/b\n/a\n");
  EXPECT_EQ(IndexWith("/a", "/b\n/a\n/c\n"), "/a\n/b\n/c\n");
  EXPECT_EQ(IndexWith("/a", "/a"), "/a\n");
}

TEST(ClusterIndexTest, OldFoldersAreDropped) {
  std::string index;
  for (int i = 0; i < 100; ++i) index = IndexWith(fmt::format("/{}", i), index);
  EXPECT_TRUE(index.starts_with("/99\n/98\n"));
  EXPECT_TRUE(index.ends_with("/37\n/36\n"));
}

class ClusterIndexFilesTest : public ::testing::Test {
 protected:
  // Makes a folder that has had a cluster.
  std::string ClusterFolder(const std::string& name) {
    const std::string folder = directory_.Child(name);
    std::filesystem::create_directory(folder);
    EXPECT_TRUE(WriteClusterSettings(folder, {}).ok());
    return folder;
  }
  void Add(const std::string& folder) {
    const Status added = AddToIndex(files_, state_, folder);
    EXPECT_TRUE(added.ok()) << ToString(added);
  }

  TemporaryDirectory directory_;
  PosixFileSystem files_;
  const std::string state_ = directory_.Child("home/state/troupe");
};

TEST_F(ClusterIndexFilesTest, WithoutAFolderItIsTheDefault) {
  EXPECT_EQ(*NewestFolder(files_, state_), state_ + "/default");
  EXPECT_FALSE(std::filesystem::exists(state_)) << "a question makes no folder";
}

TEST_F(ClusterIndexFilesTest, TheLastFolderThatIsStillThereIsTheNewest) {
  const std::string first = ClusterFolder("first"), second = ClusterFolder("second");
  Add(first);
  Add(second);
  EXPECT_EQ(*NewestFolder(files_, state_), second);
  Add(first);
  EXPECT_EQ(*NewestFolder(files_, state_), first);
  std::filesystem::remove_all(first);
  EXPECT_EQ(*NewestFolder(files_, state_), second);
  // It may come back, such as one on a disk that is not mounted.
  EXPECT_EQ(*ReadTextFile(IndexPath(state_)), first + "\n" + second + "\n");
  std::filesystem::remove_all(second);
  std::ofstream(second) << "a file";
  EXPECT_EQ(*NewestFolder(files_, state_), state_ + "/default");
}

TEST_F(ClusterIndexFilesTest, AnotherHostHasItsOwnIndex) {
  EXPECT_EQ(IndexPath(state_), state_ + "/clusters-" + ThisHost().name);
  Add(ClusterFolder("here"));
  const std::string there = ClusterFolder("there");
  std::ofstream(state_ + "/clusters-another-host") << there << "\n";
  EXPECT_EQ(*NewestFolder(files_, state_), directory_.Child("here"));
}

TEST_F(ClusterIndexFilesTest, AFolderThatOthersMayWriteIsNotContinued) {
  using std::filesystem::permissions;
  using std::filesystem::perms;
  const std::string safe = ClusterFolder("safe"), folder = ClusterFolder("folder");
  const std::string settings = ClusterSettingsPath(folder);
  Add(safe);
  Add(folder);
  const auto with = [](perms more) { return perms::owner_all | more; };
  permissions(folder, with(perms::others_write));
  EXPECT_EQ(*NewestFolder(files_, state_), safe);
  permissions(folder, with(perms::group_write));
  permissions(settings, with(perms::others_write));
  EXPECT_EQ(*NewestFolder(files_, state_), safe);
  permissions(settings, with(perms::group_write));
  EXPECT_EQ(*NewestFolder(files_, state_), folder);
  std::filesystem::rename(settings, directory_.Child("settings"));
  std::filesystem::create_symlink(directory_.Child("settings"), settings);
  EXPECT_EQ(*NewestFolder(files_, state_), safe) << "a link is no settings file";
}

TEST_F(ClusterIndexFilesTest, AFolderOfAnotherUserIsNotContinued) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give files to another user";
  constexpr uid_t kOther = 65534;
  const std::string safe = ClusterFolder("safe"), folder = ClusterFolder("folder");
  Add(safe);
  Add(folder);
  ASSERT_EQ(chown(folder.c_str(), kOther, getegid()), 0);
  EXPECT_EQ(*NewestFolder(files_, state_), safe);
  ASSERT_EQ(chown(folder.c_str(), geteuid(), getegid()), 0);
  EXPECT_EQ(*NewestFolder(files_, state_), folder);
  ASSERT_EQ(chown(ClusterSettingsPath(folder).c_str(), kOther, getegid()), 0);
  EXPECT_EQ(*NewestFolder(files_, state_), safe);
}

TEST_F(ClusterIndexFilesTest, ALineThatIsNoPathIsReported) {
  Add(ClusterFolder("first"));
  for (const char* line : {"relative", "/a\x1b", ""}) {
    std::ofstream(IndexPath(state_)) << line << "\n";
    const Status refused = NewestFolder(files_, state_).status();
    EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument) << line;
    EXPECT_THAT(std::string(Message(refused)), HasSubstr(IndexPath(state_) + " has the line"));
  }
}

TEST_F(ClusterIndexFilesTest, AStateFolderThatCannotBeMadeIsAnError) {
  std::ofstream(directory_.Child("home")) << "a file";
  EXPECT_FALSE(AddToIndex(files_, state_, "/a").ok());
}

}  // namespace
}  // namespace troupe
