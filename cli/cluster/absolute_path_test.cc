#include "cli/cluster/absolute_path.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

namespace troupe {
namespace {

TEST(AbsolutePathTest, OneFolderHasOneName) {
  for (const char* path : {"/a/b", "/a/b/", "/a/b//", "/a//b/.", "/a/./b/", "/a/c/../b/"})
    EXPECT_EQ(NormalPath(path), "/a/b") << path;
  EXPECT_EQ(NormalPath("/"), "/");
}

TEST(AbsolutePathTest, ARelativePathBeginsInTheWorkingDirectory) {
  const std::string here = std::filesystem::current_path().string();
  for (const char* path : {"a", "a/", "./a//", "b/../a/."})
    EXPECT_EQ(*AbsolutePath(path), here + "/a") << path;
  EXPECT_EQ(*AbsolutePath("/a/"), "/a");
  EXPECT_EQ(AbsolutePath("/a\xe9").status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace troupe
