#include "base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

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

}  // namespace
}  // namespace troupe
