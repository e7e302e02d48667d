#include "coordinator/service/series_lifetime.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using std::chrono::minutes;
using std::chrono::nanoseconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int64_t kWall = 1'800'000'000'000'000'000;
const MonotonicTime kNow = MonotonicTime(std::chrono::hours(1));

int64_t Ago(minutes time) { return kWall - nanoseconds(time).count(); }

TEST(SeriesLifetime, SeriesGoOnceAQuarterOfAnHourAfterTheEnd) {
  SeriesLifetime lifetime;
  lifetime.SetState("a", v1::JOB_STATE_RUNNING, 0, kNow, kWall);
  EXPECT_THAT(lifetime.Expire(kNow + minutes(60)), IsEmpty());
  lifetime.SetState("a", v1::JOB_STATE_SUCCEEDED, kWall, kNow, kWall);
  lifetime.SetState("a", v1::JOB_STATE_SUCCEEDED, kWall, kNow + minutes(10), kWall);
  EXPECT_THAT(lifetime.Expire(kNow + minutes(14)), IsEmpty());
  EXPECT_TRUE(lifetime.IsShown("a"));
  EXPECT_THAT(lifetime.Expire(kNow + minutes(15)), ElementsAre("a"));
  EXPECT_FALSE(lifetime.IsShown("a"));
  EXPECT_THAT(lifetime.Expire(kNow + minutes(16)), IsEmpty());
}

TEST(SeriesLifetime, AJobThatEndedBeforeThisProcessBeganHasOnlyTheRestOfItsTime) {
  SeriesLifetime lifetime;
  lifetime.SetState("old", v1::JOB_STATE_FAILED, Ago(minutes(20)), kNow, kWall);
  EXPECT_FALSE(lifetime.IsShown("old"));
  EXPECT_THAT(lifetime.Expire(kNow), IsEmpty()) << "it had no series";
  lifetime.SetState("new", v1::JOB_STATE_CANCELLED, Ago(minutes(10)), kNow, kWall);
  EXPECT_TRUE(lifetime.IsShown("new"));
  EXPECT_THAT(lifetime.Expire(kNow + minutes(5)), ElementsAre("new"));
  lifetime.SetState("ahead", v1::JOB_STATE_FAILED, Ago(minutes(-90)), kNow, kWall);
  EXPECT_THAT(lifetime.Expire(kNow + minutes(15)), ElementsAre("ahead"))
      << "the clock was set back";
}

TEST(SeriesLifetime, AResumedJobIsShownAgain) {
  SeriesLifetime lifetime;
  lifetime.SetState("a", v1::JOB_STATE_FAILED, Ago(minutes(20)), kNow, kWall);
  lifetime.SetState("a", v1::JOB_STATE_QUEUED, 0, kNow, kWall);
  EXPECT_TRUE(lifetime.IsShown("a"));
  lifetime.SetState("a", v1::JOB_STATE_FAILED, kWall, kNow, kWall);
  lifetime.Forget("a");
  EXPECT_THAT(lifetime.Expire(kNow + minutes(60)), IsEmpty());
}

}  // namespace
}  // namespace troupe
