#include "coordinator/service/namespaces_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

#include "base/temporary_directory.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

class NamespacesWatchTest : public ::testing::Test {
 protected:
  void Write(const std::string& text) { std::ofstream(path_) << text; }

  // The thread and the test may read a change; only one of them reports it.
  int Changes() {
    const std::lock_guard lock(mutex_);
    return static_cast<int>(seen_.size());
  }
  bool NewestHas(const std::string& name) {
    const std::lock_guard lock(mutex_);
    return !seen_.empty() && seen_.back()->Find(name) != nullptr;
  }
  NamespacesWatch::Changed Collect() {
    return [this](std::shared_ptr<const Namespaces> changed) {
      const std::lock_guard lock(mutex_);
      seen_.push_back(std::move(changed));
    };
  }

  TemporaryDirectory directory_;
  const std::string path_ = directory_.Child("namespaces.yaml");
  std::mutex mutex_;
  std::vector<std::shared_ptr<const Namespaces>> seen_;
};

TEST_F(NamespacesWatchTest, AFileThatCannotBeReadOrIsInvalidIsRefusedByItsName) {
  auto file = ReadNamespacesFile(path_);
  EXPECT_EQ(file.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(ToString(file.status()), HasSubstr(path_));
  Write("namespaces: [{name: a, quota: {jobs: 0}}]");
  file = ReadNamespacesFile(path_);
  EXPECT_EQ(file.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(ToString(file.status()), HasSubstr(path_));
}

TEST_F(NamespacesWatchTest, TheEndOfAnErrorIsLogged) {
  Write("namespaces: [{name: a}]");
  NamespacesWatch watch(*ReadNamespacesFile(path_), Collect());
  testing::internal::CaptureStderr();
  Write("namespaces: []");
  EXPECT_FALSE(watch.Read().ok());
  Write("namespaces: [{name: a}]");
  EXPECT_TRUE(watch.Read().ok());
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("the former namespaces stay in use"));
  EXPECT_THAT(log, HasSubstr("the namespaces in use are those of " + path_ + " again"));
}

TEST_F(NamespacesWatchTest, AFifoAndATooLargeFileAreRefusedUnread) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  const auto fifo = ReadNamespacesFile(path_);
  EXPECT_EQ(fifo.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(ToString(fifo.status()), HasSubstr(path_ + ": is not a regular file"));
  std::filesystem::remove(path_);
  Write("namespaces: [{name: a}]");
  std::filesystem::resize_file(path_, uintmax_t{1} << 26);
  const auto large = ReadNamespacesFile(path_);
  EXPECT_EQ(large.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(ToString(large.status()), HasSubstr("above the limit of 1048576 bytes"));
}

TEST_F(NamespacesWatchTest, AChangedFileIsUsedAndAnInvalidOneLeavesTheFormerInUse) {
  Write("namespaces: [{name: a}]");
  auto file = ReadNamespacesFile(path_);
  ASSERT_TRUE(file.ok()) << ToString(file.status());
  NamespacesWatch watch(*std::move(file), Collect());
  EXPECT_TRUE(watch.Read().ok());
  EXPECT_EQ(Changes(), 0) << "the file is as before";

  Write("namespaces: [{name: b}]");
  EXPECT_TRUE(watch.Read().ok());
  EXPECT_TRUE(NewestHas("b"));

  Write("namespaces: [{name: b, quota: {jobs: 0}}]");
  EXPECT_FALSE(watch.Read().ok());
  EXPECT_TRUE(NewestHas("b"));

  Write("namespaces: [{name: c}]");
  EXPECT_TRUE(watch.Read().ok());
  EXPECT_TRUE(NewestHas("c"));
}

}  // namespace
}  // namespace troupe
