#include "report/text/duration_text.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(DurationTextTest, HasHoursMinutesAndSeconds) {
  EXPECT_EQ(DurationText(2.6), "3 s");
  EXPECT_EQ(DurationText(123), "2:03");
  EXPECT_EQ(DurationText(3723), "1:02:03");
  EXPECT_EQ(DurationText(-1), "0 s");
}

TEST(DurationTextTest, AnAgeHasOneUnitAndIsRoundedDown) {
  EXPECT_EQ(AgeText(59), "59 s");
  EXPECT_EQ(AgeText(3599), "59 min");
  EXPECT_EQ(AgeText(int64_t{47} * 3600 + 3599), "47 h");
  EXPECT_EQ(AgeText(int64_t{49} * 3600), "2 d");
  EXPECT_EQ(AgeText(1'000'000'000, 61'500'000'000), "1 min");
  EXPECT_EQ(AgeText(5'000'000'000, 1'000'000'000), "0 s") << "the clocks of two hosts differ";
  EXPECT_EQ(AgeText(0, 61'000'000'000), "");
}

TEST(DurationTextTest, ADurationHasNumbersAndUnitsTheLargerOnesFirst) {
  EXPECT_EQ(*ParseDuration("--since", "90s"), 90);
  EXPECT_EQ(*ParseDuration("--since", "15m"), 900);
  EXPECT_EQ(*ParseDuration("--since", "2h"), 7200);
  EXPECT_EQ(*ParseDuration("--since", "30d"), 2'592'000);
  EXPECT_EQ(*ParseDuration("--since", "1h30m"), 5400);
  EXPECT_EQ(*ParseDuration("--since", "1d2h3m4s"), 93'784);
  EXPECT_EQ(*ParseDuration("--since", "1h0m"), 3600);
  for (const char* text : {"", "5", "h", "0s", "-1h", "1.5h", "1 h", "9999999999999d", "0h0m",
                           "30m1h", "1h1h", "1h30", "1h-30m", "1hm", "1h 30m"}) {
    const auto refused = ParseDuration("--since", text);
    EXPECT_EQ(refused.status().code(), StatusCode::kInvalidArgument) << text;
    EXPECT_EQ(Message(refused.status()),
              std::string("--since is \"") + text +
                  "\", must be a time such as 30d or 1h30m (d, h, m, s)");
  }
}

}  // namespace
}  // namespace troupe
