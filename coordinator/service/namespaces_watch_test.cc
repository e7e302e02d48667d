#include "coordinator/service/namespaces_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
