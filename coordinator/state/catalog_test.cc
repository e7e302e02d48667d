#include "coordinator/state/catalog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <string_view>
#include <utility>

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

TEST(Catalog, TokensAndRevocationsAreReadBack) {
  MemoryStore store;
  CatalogBatch batch;
  v1::UserTokenRecord token;
  token.mutable_token()->set_id("0123456789abcdef");
  token.set_secret_hash("hash");
  batch.PutUserToken(token);
  token.mutable_token()->set_id("fedcba9876543210");
  batch.PutUserToken(token);
  batch.DeleteUserToken("0123456789abcdef");
  v1::Revocation serial, identity;
  serial.set_serial("a1");
  identity.set_identity("spiffe://lab/viewer/ann");
  identity.set_revoked(7);
  batch.PutRevocation(serial);
  batch.PutRevocation(identity);
  identity.set_revoked(8);
  batch.PutRevocation(identity);
  ASSERT_TRUE(WriteCatalog(batch, &store).ok());
  store.Crash(1);
  const auto records = ReadAccessRecords(store);
  ASSERT_TRUE(records.ok()) << ToString(records.status());
  ASSERT_EQ(records->tokens.size(), 1u);
  EXPECT_EQ(records->tokens[0].token().id(), "fedcba9876543210");
  EXPECT_EQ(records->tokens[0].secret_hash(), "hash");
  ASSERT_EQ(records->revocations.size(), 2u);
  EXPECT_EQ(records->revocations[0].identity(), "spiffe://lab/viewer/ann");
  EXPECT_EQ(records->revocations[0].revoked(), 8);
  EXPECT_EQ(records->revocations[1].serial(), "a1");
  EXPECT_TRUE(ReadCatalog(store).ok());

  WriteBatch damage;
  damage.Put("revocation/serial/a1", "\xff\xff");
  ASSERT_TRUE(store.Write(damage, Durability::kSynced).ok());
  const Status damaged = ReadAccessRecords(store).status();
  EXPECT_EQ(damaged.code(), StatusCode::kDataLoss);
  EXPECT_THAT(ToString(damaged), HasSubstr("revocation/serial/a1"));
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

TEST(Catalog, RequestsOfAnOlderCoordinatorGetTheKeysOfTheirNamespaces) {
  MemoryStore store;
  WriteBatch old;
  for (const auto& [id, job] :
       {std::pair("r", "lab.a"), std::pair("s", "b"), std::pair("lab/r", "c"),
        std::pair("shop/t", "d"), std::pair("t", "shop.e"), std::pair("u", "default.f")}) {
    old.Put(fmt::format("request/{}", id), job);
    if (std::string_view(id) != "s")
      old.Put(fmt::format("request_digest/{}", id), fmt::format("of {}", job));
  }
  ASSERT_TRUE(store.Write(old, Durability::kSynced).ok());
  const std::map<std::string, std::string> requests = {
      {"lab/r", "lab.a"},     {"s", "b"},
      {"shop/t", "shop.e"},   {"u", "default.f"},
      {"default/lab/r", "c"}, {"default/shop/t", "d"}};
  std::map<std::string, std::string> digests;
  for (const auto& [key, job] : requests) {
    if (key != "s") digests[key] = "of " + job;
  }
  for (int start = 0; start < 2; ++start) {
    ASSERT_TRUE(AdvanceLeaderEpoch(&store).ok());
    const auto image = ReadCatalog(store);
    ASSERT_TRUE(image.ok()) << ToString(image.status());
    EXPECT_EQ(image->requests, requests);
    EXPECT_EQ(image->request_digests, digests);
  }
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
