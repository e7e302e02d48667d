#include "coordinator/state/quota.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr MonotonicTime kQuotaStart{std::chrono::hours(1)};

v1::Namespace Limited() {
  v1::Namespace space;
  space.set_name("lab");
  space.mutable_quota()->set_devices(8);
  space.mutable_quota()->set_jobs(4);
  space.mutable_quota()->set_queued(2);
  space.mutable_quota()->set_submissions_per_minute(6);
  space.mutable_quota()->set_priority(3);
  return space;
}

TEST(Quota, AnotherJobIsAllowedBelowEachLimit) {
  EXPECT_TRUE(CheckQuota(Limited(), {.jobs = 3, .queued = 1, .submissions = 5}).ok());
  EXPECT_TRUE(CheckQuota({}, {.jobs = 999, .queued = 999, .submissions = 999}).ok());
}

TEST(Quota, ARefusalNamesNamespaceQuotaAndBothNumbers) {
  const auto expect = [](const JobUse& use, const std::string& text) {
    const Status refused = CheckQuota(Limited(), use);
    EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
    EXPECT_EQ(std::string(Message(refused)), text);
  };
  expect({.jobs = 4}, "the namespace lab has 4 jobs that have not ended, and its quota.jobs is 4");
  expect({.queued = 3}, "the namespace lab has 3 queued jobs, and its quota.queued is 2");
  expect({.submissions = 6},
         "6 jobs were submitted in the namespace lab within the last minute, and its "
         "quota.submissions_per_minute is 6");
}

TEST(Quota, AUserHasALimitOfItsOwn) {
  EXPECT_TRUE(CheckUserJobs("ann", {.user_jobs = 9}, 10).ok());
  EXPECT_TRUE(CheckUserJobs("", {.user_jobs = 10}, 10).ok());
  const Status refused = CheckUserJobs("ann", {.user_jobs = 10}, 10);
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(ToString(refused), AllOf(HasSubstr("ann has 10 jobs"), HasSubstr("of a user is 10")));
  EXPECT_THAT(ToString(CheckUserJobs("ann", {.user_jobs = 1}, 1)),
              HasSubstr("ann has 1 job that has not ended, and"));
}

TEST(Quota, AJobThatTheNamespaceMayNeverRunIsInvalid) {
  v1::JobSpec spec;
  EXPECT_TRUE(CheckFits(Limited(), spec, 8).ok());
  spec.set_priority(3);
  EXPECT_TRUE(CheckFits(Limited(), spec, 8).ok());
  spec.set_priority(4);
  const Status refused = CheckFits(Limited(), spec, 9);
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(ToString(refused),
              AllOf(HasSubstr("parallelism needs 9 devices, above quota.devices = 8 of the "
                              "namespace lab"),
                    HasSubstr("priority is 4, above quota.priority = 3 of the namespace lab")));
  EXPECT_TRUE(CheckFits({}, spec, 1000).ok());
}

TEST(Quota, SubmissionsCountForAMinute) {
  SubmissionTimes times;
  EXPECT_EQ(times.CountAt(kQuotaStart), 0);
  times.Add(kQuotaStart);
  times.Add(kQuotaStart + kSubmissionTime / 2);
  EXPECT_EQ(times.CountAt(kQuotaStart + kSubmissionTime / 2), 2);
  EXPECT_EQ(times.CountAt(kQuotaStart + kSubmissionTime), 1);
  times.Add(kQuotaStart + kSubmissionTime);
  EXPECT_EQ(times.CountAt(kQuotaStart + kSubmissionTime), 2);
  EXPECT_EQ(times.CountAt(kQuotaStart + 2 * kSubmissionTime), 0);
}

v1::LeaseRecord LeaseOf(const std::string& job, uint64_t group_epoch = 2) {
  v1::LeaseRecord lease;
  lease.set_job(job);
  lease.set_group_epoch(group_epoch);
  return lease;
}

TEST(Quota, TheDevicesOfThePresentGroupsOfANamespaceCount) {
  Fleet fleet;
  fleet.leases = {{{"w", 0}, LeaseOf("lab.a")},     {{"w", 1}, LeaseOf("lab.a")},
                  {{"w", 2}, LeaseOf("lab.b")},     {{"w", 3}, LeaseOf("a")},
                  {{"w", 4}, LeaseOf("default.b")}, {{"w", 5}, LeaseOf("lab.b", 1)},
                  {{"w", 6}, LeaseOf("lab.ended")}, {{"w", 7}, LeaseOf("lab.deleted")}};
  std::map<std::string, Job> jobs;
  for (const char* id : {"lab.a", "lab.b", "a", "default.b"}) jobs[id].group.emplace().epoch = 2;
  jobs["lab.ended"];
  const DeviceUse use(fleet, jobs);
  EXPECT_EQ(use.OfOthers("lab.a"), 1);
  EXPECT_EQ(use.OfOthers("lab.b"), 2);
  EXPECT_EQ(use.OfOthers("lab.c"), 3);
  EXPECT_EQ(use.OfOthers("c"), 2);
  EXPECT_EQ(use.OfOthers("other.a"), 0);
}

TEST(Quota, DevicesAreLeftUpToTheQuota) {
  const v1::Namespace space = Limited();
  EXPECT_EQ(DevicesLeft(&space, 0), 8);
  EXPECT_EQ(DevicesLeft(&space, 5), 3);
  EXPECT_EQ(DevicesLeft(&space, 9), 0) << "the quota was reduced";
  const v1::Namespace unlimited;
  EXPECT_EQ(DevicesLeft(&unlimited, 9), kNoDeviceLimit);
  EXPECT_EQ(DevicesLeft(nullptr, 0), 0);
}

TEST(Quota, TheReasonToWaitHasTheNumbers) {
  const v1::Namespace space = Limited();
  EXPECT_EQ(QuotaWaitText(&space, "lab.a", 4, 6),
            "4 ranks need 4 devices; quota.devices of the namespace lab is 8, and its other jobs "
            "use 6");
  EXPECT_THAT(QuotaWaitText(&space, "lab.a", 1, 8), HasSubstr("1 rank needs 1 device; quota."));
  EXPECT_EQ(QuotaWaitText(nullptr, "ghost.a", 4, 0), "the namespace ghost does not exist");
}

}  // namespace
}  // namespace troupe
