#include "coordinator/access/failure_limit.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

using std::chrono::seconds;

TEST(FailureLimit, CountsTheFailuresOfAMovingWindow) {
  FailureLimit limit(3, seconds(60));
  const MonotonicTime begin;
  EXPECT_TRUE(limit.Admit(begin));
  EXPECT_TRUE(limit.Admit(begin + seconds(30)));
  EXPECT_TRUE(limit.Admit(begin + seconds(59)));
  EXPECT_FALSE(limit.Admit(begin + seconds(59)));
  EXPECT_TRUE(limit.Admit(begin + seconds(60)));
  EXPECT_FALSE(limit.Admit(begin + seconds(89)));
  EXPECT_TRUE(limit.Admit(begin + seconds(90)));
}

TEST(FailureLimit, ThoseThatAreNotAdmittedDoNotCount) {
  FailureLimit limit(1, seconds(60));
  const MonotonicTime begin;
  EXPECT_TRUE(limit.Admit(begin));
  for (int second = 1; second < 60; ++second) EXPECT_FALSE(limit.Admit(begin + seconds(second)));
  EXPECT_TRUE(limit.Admit(begin + seconds(60)));
}

}  // namespace
}  // namespace troupe
