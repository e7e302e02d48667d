#include "coordinator/state/catalog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/store/memory_store.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

TEST(Catalog, EverythingThatWasPutIsReadBack) {
  MemoryStore store;
  CatalogBatch batch;
  v1::JobRecord record;
  record.set_id("a");
  record.set_group_epoch(7);
  v1::JobSpec spec;
  spec.set_name("a");
  v1::Plan plan;
  plan.set_digest("d");
  v1::GroupRecord group;
  group.set_group_epoch(7);
  v1::LeaseRecord lease;
  lease.set_job("a");
  v1::CheckpointRecord checkpoint;
  checkpoint.set_job("a");
  checkpoint.set_attempt(300);
  batch.PutJob(record);
  batch.PutSpec("a", spec);
  batch.PutPlan("a", plan);
  batch.PutGroup("a", group);
  batch.PutLease("worker-0", 12, lease);
  batch.PutCheckpoint(checkpoint);
  batch.PutRequest("r", "a", "digest of r");
  ASSERT_TRUE(WriteCatalog(batch, &store).ok());
  const auto image = ReadCatalog(store);
  ASSERT_TRUE(image.ok()) << ToString(image.status());
  const CatalogJob& job = image->jobs.at("a");
  EXPECT_EQ(job.record.group_epoch(), 7u);
  EXPECT_EQ(job.plan.digest(), "d");
  EXPECT_EQ(job.group.group_epoch(), 7u);
  EXPECT_EQ(job.checkpoints.at(300).attempt(), 300);
  EXPECT_EQ(image->leases.at({"worker-0", 12}).job(), "a");
  EXPECT_EQ(image->requests.at("r"), "a");
  EXPECT_EQ(image->request_digests.at("r"), "digest of r");
}

TEST(Catalog, TheLeaderEpochRisesWithEveryStartAndSurvivesACrash) {
  MemoryStore store;
  EXPECT_EQ(*AdvanceLeaderEpoch(&store), 1u);
  store.Crash(3);
  EXPECT_EQ(*AdvanceLeaderEpoch(&store), 2u);
  store.FailWrites(1);
  EXPECT_FALSE(AdvanceLeaderEpoch(&store).ok()) << "an epoch that is not durable is not served";
  EXPECT_EQ(*AdvanceLeaderEpoch(&store), 3u);
}

TEST(Catalog, HistoryIsInOrderOfStepsAndKeepsTheLastOfEach) {
  MemoryStore store;
  CatalogBatch batch;
  for (const int64_t step : {1, 2, 9, 10, 11, 300}) {
    v1::StepEvent row;
    row.set_step(step);
    row.set_group_epoch(1);
    batch.PutStep("a", row);
  }
  v1::StepEvent again;
  again.set_step(10);
  again.set_group_epoch(2);
  batch.PutStep("a", again);
  // A job name that has another one as a prefix names another job.
  batch.PutStep("a-b", again);
  ASSERT_TRUE(WriteCatalog(batch, &store).ok());
  const auto rows = ReadHistory(store, "a", 9, 3);
  ASSERT_TRUE(rows.ok());
  ASSERT_EQ(rows->size(), 3u);
  EXPECT_EQ((*rows)[0].step(), 9);
  EXPECT_EQ((*rows)[1].group_epoch(), 2u);
  EXPECT_EQ(ReadHistory(store, "a", 0, 100)->size(), 6u);
}

TEST(Catalog, ADamagedValueIsDataLossThatNamesItsKey) {
  MemoryStore store;
  WriteBatch batch;
  batch.Put("job/a", "\xff\xff");
  ASSERT_TRUE(store.Write(batch, Durability::kSynced).ok());
  const auto image = ReadCatalog(store);
  EXPECT_EQ(image.status().code(), StatusCode::kDataLoss);
  EXPECT_THAT(std::string(Message(image.status())), HasSubstr("job/a"));
}

TEST(Catalog, AnEventKeyIsDeletedAlone) {
  MemoryStore store;
  CatalogBatch batch;
  v1::JobEvent event;
  event.set_event("QUEUED");
  batch.PutEvent("a", 1, event);
  batch.PutEvent("a", 2, event);
  batch.DeleteEvent("a", 1);
  ASSERT_TRUE(WriteCatalog(batch, &store).ok());
  EXPECT_EQ(ReadEvents(store, "a")->size(), 1u);
}

}  // namespace
}  // namespace troupe
