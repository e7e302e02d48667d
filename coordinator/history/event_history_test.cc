#include "coordinator/history/event_history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "coordinator/job/job_record.h"
#include "coordinator/test_cluster.h"

namespace troupe {
namespace {

TEST(EventHistory, KeepsTheFirstAndTheNewestOfEachKind) {
  v1::JobRecord record;
  std::set<uint64_t> kept;
  for (uint64_t number = 1; number <= 1000; ++number) {
    const bool rare = number % 250 == 0;
    const CountedEvent counted =
        CountEvent(rare ? "RANK_LOST" : "CHECKPOINT_COMMITTED", number, &record);
    kept.insert(number);
    if (counted.dropped) kept.erase(*counted.dropped);
    EXPECT_EQ(counted.count, static_cast<int64_t>(rare ? number / 250 : number - number / 250));
  }
  EXPECT_EQ(kept.size(), static_cast<size_t>(4 + kFirstEventsKept + kNewestEventsKept));
  for (const uint64_t rare : {250, 500, 750, 1000}) EXPECT_TRUE(kept.contains(rare));
  EXPECT_TRUE(kept.contains(1) && kept.contains(8) && kept.contains(999));
  EXPECT_FALSE(kept.contains(9));
  EXPECT_LT(record.ByteSizeLong(), 200u) << "it is written with every change of the job";
}

TEST(EventHistory, ManyCommitsDoNotDisplaceWhatLedToARecovery) {
  TestCluster cluster;
  RunJob(cluster, 1, 1, 100000);
  cluster.Crash("a", 0);
  cluster.StopRanks("a", 1, {"worker-0"});
  cluster.StartRanks("a");
  Job& job = cluster.state().jobs.at("a");
  for (int i = 0; i < 600; ++i) {
    Effects effects;
    Turn turn{{}, 0, 1, cluster.state().options, cluster.state().fleet, effects};
    RecordEvent(job, "CHECKPOINT_COMMITTED", "", turn);
    ASSERT_TRUE(WriteCatalog(effects.writes, &cluster.store()).ok());
    EXPECT_EQ(effects.updates.back().update.event().count(), i + 1);
  }
  const std::vector<std::string> events = cluster.Events("a");
  EXPECT_THAT(events, testing::Contains("RANK_LOST"));
  EXPECT_THAT(events, testing::Contains("RECOVERING"));
  EXPECT_LT(events.size(), 60u);
}

}  // namespace
}  // namespace troupe
