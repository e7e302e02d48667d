#include "base/security/record_limit.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(RecordLimit, AFloodFromOnePlaceLeavesAFewRecordsAMinuteAndTheirNumber) {
  RecordLimit limit;
  const MonotonicTime begin{std::chrono::hours(1)};
  int64_t admitted = 0, dropped = 0;
  for (int i = 0; i < 6 * 600; ++i) {  // six a second for ten minutes
    const auto before =
        limit.Admit("handshaker.cc", 7, begin + i * std::chrono::milliseconds(1000) / 6);
    if (!before) continue;
    ++admitted;
    dropped += *before;
  }
  EXPECT_EQ(admitted, 10 * RecordLimit::kMostInWindow);
  EXPECT_EQ(dropped, 9 * (360 - RecordLimit::kMostInWindow));
}

TEST(RecordLimit, OtherPlacesAreAdmittedMeanwhile) {
  RecordLimit limit;
  const MonotonicTime now{std::chrono::hours(1)};
  for (int i = 0; i < 100; ++i) limit.Admit("a.cc", 1, now);
  EXPECT_FALSE(limit.Admit("a.cc", 1, now));
  EXPECT_EQ(limit.Admit("a.cc", 2, now), 0);
  EXPECT_EQ(limit.Admit("b.cc", 1, now), 0);
  EXPECT_EQ(limit.Admit("a.cc", 1, now + RecordLimit::kWindow), 98);
}

}  // namespace
}  // namespace troupe
