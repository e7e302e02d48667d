#include "base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <string>

#include "base/clock.h"

namespace troupe {
namespace {

TEST(Log, ATextOfOthersStaysWithinItsRecord) {
  testing::internal::CaptureStderr();
  SetLogContext("job=a\nb");
  LogInfo("worker", "host \"{}\"",
          "h\n2031-05-04T12:00:00.000 I worker=worker-9 forged\x1b[2J\u0085\u202e\xe9");
  SetLogContext("");
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::ranges::count(text, '\n'), 1);
  EXPECT_THAT(text, testing::HasSubstr("I worker job=a\\nb host \"h\\n2031-05-04T12:00:00.000 I "
                                       "worker=worker-9 forged\\u001b[2J\\u0085\\u202e\\xe9\"\n"));
}

TEST(Log, ARecordBeginsWithItsTimeInUtc) {
  setenv("TZ", "UTC-9", 1);
  tzset();
  constexpr size_t kSeconds = 19;  // "2031-05-04T12:00:00"
  const std::string before = UtcText(std::time(nullptr)).substr(0, kSeconds);
  testing::internal::CaptureStderr();
  LogInfo("worker", "begins");
  const std::string text = testing::internal::GetCapturedStderr();
  const std::string after = UtcText(std::time(nullptr)).substr(0, kSeconds);
  unsetenv("TZ");
  tzset();
  EXPECT_GE(text.substr(0, kSeconds), before);
  EXPECT_LE(text.substr(0, kSeconds), after);
  EXPECT_EQ(text.substr(23), "Z I worker begins\n") << text;
}

}  // namespace
}  // namespace troupe
