#include "base/text/home_path.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(HomePath, ATildeThatIsAWholeComponentIsRefused) {
  EXPECT_EQ(HomePathFault("~/data/x"),
            "is ~/data/x: write the absolute path; ~ is expanded by a shell only at the start of a "
            "word");
  EXPECT_EQ(HomePathFault("~").substr(0, 5), "is ~:");
  for (const char* path : {"", "x", "/home/ada/~", "./~/x", "~ada", "x~", "~x/y"})
    EXPECT_EQ(HomePathFault(path), "") << path;
}

}  // namespace
}  // namespace troupe
