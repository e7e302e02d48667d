#include "base/keep_ended.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(KeepEnded, IsANumberOrATime) {
  EXPECT_EQ(ParseKeepEnded("--keep-ended", "1000")->count, 1000);
  EXPECT_EQ(ParseKeepEnded("--keep-ended", "36h")->age, std::chrono::hours(36));
  EXPECT_EQ(ParseKeepEnded("--keep-ended", "7d")->age, std::chrono::hours(168));
  EXPECT_EQ(ParseKeepEnded("--keep-ended", "0")->count, 0);
  const KeepEnded all = ParseKeepEnded("--keep-ended", "all").value();
  EXPECT_FALSE(all.count || all.age);
  EXPECT_EQ(ParseKeepEnded("--keep-ended", "36500d")->age, std::chrono::hours(24 * 36500));
  for (const char* text : {"", "h", "-1", "3w", "1.5h", "al", "99999999999999999999", "36501d",
                           "110000d", "999999d", "4000000000s"}) {
    EXPECT_EQ(ParseKeepEnded("--keep-ended", text).status().code(), StatusCode::kInvalidArgument)
        << text;
  }
}

}  // namespace
}  // namespace troupe
