#include "base/security/insecure_reminder.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(InsecureReminder, RemindsAtOnceAndThenHourly) {
  InsecureReminder reminder("test", true);
  const MonotonicTime start{std::chrono::seconds(5)};
  EXPECT_TRUE(reminder.RemindAt(start));
  EXPECT_FALSE(reminder.RemindAt(start + std::chrono::minutes(59)));
  EXPECT_TRUE(reminder.RemindAt(start + std::chrono::minutes(60)));
  EXPECT_FALSE(reminder.RemindAt(start + std::chrono::minutes(61)));
  EXPECT_TRUE(reminder.RemindAt(start + std::chrono::minutes(120)));
}

TEST(InsecureReminder, NeverRemindsASecureProcess) {
  InsecureReminder reminder("test", false);
  EXPECT_FALSE(reminder.RemindAt(MonotonicTime(std::chrono::hours(100))));
}

}  // namespace
}  // namespace troupe
