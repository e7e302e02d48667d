#include "report/live/device_use.h"

#include <gtest/gtest.h>

#include "report/live/live_views_test.h"

namespace troupe {
namespace {

TEST(DeviceUseTest, DevicesAreUsedFreeOrNeither) {
  const ClusterPageView view = ExampleCluster();
  const DevicesInUse use = CountDevices(view.workers, view.jobs);
  ASSERT_EQ(use.by_kind.size(), 2u);
  // Ranks of a known job use two of worker-0, one is free and one is condemned.
  EXPECT_EQ(use.by_kind.at("cuda").total, 4);
  EXPECT_EQ(use.by_kind.at("cuda").used, 2);
  EXPECT_EQ(use.by_kind.at("cuda").free, 1);
  // On worker-1, which is draining, a job that is not known has a rank.
  EXPECT_EQ(use.by_kind.at("cpu").total, 2);
  EXPECT_EQ(use.by_kind.at("cpu").used, 1);
  EXPECT_EQ(use.by_kind.at("cpu").free, 0);
  EXPECT_EQ(use.unknown, 0);
}

TEST(DeviceUseTest, AJobThatHasLeftItsWorkerUsesNoDevice) {
  ClusterPageView view = ExampleCluster();
  view.workers[0].clear_jobs();
  view.workers[0].clear_ranks();
  const DevicesInUse use = CountDevices(view.workers, view.jobs);
  EXPECT_EQ(use.by_kind.at("cuda").used, 0);
  EXPECT_EQ(use.by_kind.at("cuda").free, 3);
}

TEST(DeviceUseTest, TheKindOfADeviceIsNotGuessed) {
  v1::WorkerStatus worker = FromText<v1::WorkerStatus>(R"(
      name: "worker-0" state: "READY" jobs: "jobs/other" ranks { job: "jobs/other" }
      devices { index: 0 kind { kind: "cpu" } } devices { index: 0 kind { kind: "cuda" } })");
  const DevicesInUse use = CountDevices({worker}, {});
  EXPECT_EQ(use.unknown, 1);
  EXPECT_EQ(use.by_kind.at("cpu").used, 0);
  EXPECT_EQ(use.by_kind.at("cuda").used, 0);
}

}  // namespace
}  // namespace troupe
