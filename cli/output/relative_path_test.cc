#include "cli/output/relative_path.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(RelativePathTest, APathBelowTheDirectoryIsRelativeToIt) {
  EXPECT_EQ(RelativePath("/home/ada/c/step-1", "/home/ada"), "c/step-1");
  EXPECT_EQ(RelativePath("/home/ada/c/step-1", "/home/ada/"), "c/step-1");
  EXPECT_EQ(RelativePath("/home/adam/c", "/home/ada"), "/home/adam/c");
  EXPECT_EQ(RelativePath("/home/ada", "/home/ada"), "/home/ada");
  EXPECT_EQ(RelativePath("/home/ada/", "/home/ada"), "/home/ada/");
  EXPECT_EQ(RelativePath("/home/ada//c", "/home/ada"), "c");
  EXPECT_EQ(RelativePath("/home/ada//", "/home/ada"), "/home/ada//");
  EXPECT_EQ(RelativePath("/c", "/"), "/c");
  EXPECT_EQ(RelativePath("/c", ""), "/c");
  EXPECT_EQ(RelativePath("c/d", "/home"), "c/d");
}

TEST(RelativePathTest, ARelativePathIsTakenForNothingElse) {
  EXPECT_EQ(RelativePath("/h/jobs/x", "/h"), "./jobs/x");
  EXPECT_EQ(RelativePath("/h/-x", "/h"), "./-x");
  EXPECT_EQ(RelativePath("/h/~/x", "/h"), "./~/x");
  EXPECT_EQ(RelativePath("/h/x@4", "/h"), "./x@4");
  EXPECT_EQ(RelativePath("/h/jobs", "/h"), "jobs");
}

TEST(RelativePathTest, PathsInATextAreRelativeWhereTheyBegin) {
  const std::string at = "/home/ada";
  EXPECT_EQ(WithRelativePaths("attempt 1: /home/ada/c/step-1", at), "attempt 1: c/step-1");
  EXPECT_EQ(WithRelativePaths("/home/ada/a, then \"/home/ada/b\" (/home/ada/jobs/c d)", at),
            "a, then \"b\" (./jobs/c d)");
  EXPECT_EQ(WithRelativePaths("/mnt/home/ada/c and /home/adam/c", at),
            "/mnt/home/ada/c and /home/adam/c");
  EXPECT_EQ(WithRelativePaths("in /home/ada/ and /home/ada", at), "in /home/ada/ and /home/ada");
  EXPECT_EQ(WithRelativePaths("in /home/ada/", at), "in /home/ada/");
  EXPECT_EQ(WithRelativePaths("open /home/ada//c: no", at), "open c: no");
  EXPECT_EQ(WithRelativePaths("/home/ada/: a folder; \"/home/ada/\", or /home/ada//", at),
            "/home/ada/: a folder; \"/home/ada/\", or /home/ada//");
  EXPECT_EQ(WithRelativePaths("/c", "/"), "/c");
  EXPECT_EQ(WithRelativePaths("", at), "");
}

}  // namespace
}  // namespace troupe
