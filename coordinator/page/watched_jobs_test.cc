#include "coordinator/page/watched_jobs.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace troupe {
namespace {

v1::Job JobOf(const std::string& name, int64_t created = 1, uint64_t epoch = 1) {
  v1::Job job;
  job.set_name(name);
  job.set_create_wall_time_ns(created);
  job.set_group_epoch(epoch);
  return job;
}

constexpr MonotonicTime kLook{std::chrono::hours(1)};

std::string NameOf(size_t number) { return "jobs/" + std::to_string(number); }

TEST(WatchedJobs, AJobIsFoundAgainInItsGroupEpochOnly) {
  WatchedJobs jobs;
  const auto first = jobs.Find(JobOf("jobs/a"), kLook);
  EXPECT_EQ(jobs.Find(JobOf("jobs/a"), kLook), first);
  EXPECT_NE(jobs.Find(JobOf("jobs/a", 1, 2), kLook), first);
  EXPECT_NE(jobs.Find(JobOf("jobs/a", 2, 1), kLook), first) << "another job of that name";
}

TEST(WatchedJobs, TheOneLookedAtLongestAgoIsForgotten) {
  WatchedJobs jobs;
  const auto first = jobs.Find(JobOf("jobs/0"), kLook);
  const auto second = jobs.Find(JobOf("jobs/1"), kLook);
  for (size_t i = 2; i < WatchedJobs::kUsual; ++i) jobs.Find(JobOf(NameOf(i)), kLook);
  const MonotonicTime later = kLook + WatchedJobs::kLookInterval;
  EXPECT_EQ(jobs.Find(JobOf("jobs/0"), later), first);
  jobs.Find(JobOf("jobs/new"), later);
  EXPECT_EQ(jobs.Find(JobOf("jobs/0"), later), first);
  EXPECT_NE(jobs.Find(JobOf("jobs/1"), later), second);
}

TEST(WatchedJobs, JobsThatSomebodyFollowsAreRememberedUpToALimit) {
  WatchedJobs jobs;
  std::vector<std::shared_ptr<WatchedJob>> watched;
  for (size_t i = 0; i < WatchedJobs::kMost; ++i)
    watched.push_back(jobs.Find(JobOf(NameOf(i)), kLook));
  const MonotonicTime later = kLook + WatchedJobs::kLookInterval - Duration(1);
  for (size_t i = 0; i < WatchedJobs::kMost; ++i)
    EXPECT_EQ(jobs.Find(JobOf(NameOf(i)), later), watched[i]) << i;
  jobs.Find(JobOf("jobs/new"), later);
  EXPECT_EQ(jobs.Find(JobOf(NameOf(1)), later), watched[1]);
  EXPECT_NE(jobs.Find(JobOf(NameOf(0)), later), watched[0]);
}

TEST(WatchedJobs, EachJobIsTracedOnceInAnIntervalHoweverManyAreFollowed) {
  for (const size_t number : {size_t{9}, 2 * WatchedJobs::kMost}) {
    WatchedJobs jobs;
    const auto traces = [&](MonotonicTime now) {
      size_t count = 0;
      for (size_t i = 0; i < number; ++i) {
        jobs.Find(JobOf(NameOf(i)), now);
        count += jobs.MayTrace(JobOf(NameOf(i)), now) ? 1 : 0;
      }
      return count;
    };
    EXPECT_EQ(traces(kLook), number);
    EXPECT_EQ(traces(kLook + kTraceInterval - Duration(1)), 0u);
    EXPECT_EQ(traces(kLook + kTraceInterval), number);
  }
}

TEST(WatchedJobs, ATraceThatIsOfNoUseToOthersDoesNotCount) {
  WatchedJobs jobs;
  EXPECT_TRUE(jobs.MayTrace(JobOf("jobs/a"), kLook));
  EXPECT_FALSE(jobs.MayTrace(JobOf("jobs/a"), kLook));
  EXPECT_TRUE(jobs.MayTrace(JobOf("jobs/a", 1, 2), kLook)) << "of other ranks";
  jobs.ForgetTrace(JobOf("jobs/a"));
  EXPECT_TRUE(jobs.MayTrace(JobOf("jobs/a"), kLook));
}

}  // namespace
}  // namespace troupe
