#include "base/store/memory_store.h"

#include <gtest/gtest.h>

#include <set>

namespace troupe {
namespace {

WriteBatch Put(std::string key, std::string value) {
  WriteBatch batch;
  batch.Put(std::move(key), std::move(value));
  return batch;
}

TEST(MemoryStore, ScansPrefixesInOrderAndStopsWhenAsked) {
  MemoryStore store;
  for (const char* key : {"b/2", "a/1", "b/1", "c", "b0"}) {
    ASSERT_TRUE(store.Write(Put(key, "v"), Durability::kUnsynced).ok());
  }
  std::vector<std::string> keys;
  ASSERT_TRUE(ScanPrefix(store, "b/", [&](std::string_view key, std::string_view) {
                keys.emplace_back(key);
                return true;
              }).ok());
  EXPECT_EQ(keys, (std::vector<std::string>{"b/1", "b/2"}));
  int visits = 0;
  ASSERT_TRUE(store.Scan("", "", [&](auto, auto) { return ++visits < 2; }).ok());
  EXPECT_EQ(visits, 2);
  EXPECT_EQ(store.Get("none").status().code(), StatusCode::kNotFound);
}

TEST(MemoryStore, LosesASuffixOfUnsyncedBatchesAtACrashAndNeverASyncedOne) {
  std::set<int> survivors_seen;
  for (uint64_t seed = 0; seed < 64; ++seed) {
    MemoryStore store;
    ASSERT_TRUE(store.Write(Put("early", "1"), Durability::kUnsynced).ok());
    ASSERT_TRUE(store.Write(Put("synced", "1"), Durability::kSynced).ok());
    for (int i = 0; i < 3; ++i) {
      ASSERT_TRUE(store.Write(Put(fmt::format("late{}", i), "1"), Durability::kUnsynced).ok());
    }
    const int lost = store.Crash(seed);
    EXPECT_TRUE(store.Get("early").ok());
    EXPECT_TRUE(store.Get("synced").ok());
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(store.Get(fmt::format("late{}", i)).ok(), i < 3 - lost);
    }
    survivors_seen.insert(lost);
    EXPECT_EQ(store.Crash(seed), 0);  // the surviving batches are durable
  }
  EXPECT_EQ(survivors_seen.size(), 4u);
}

TEST(MemoryStore, ABatchIsWholeOrAbsentAfterACrash) {
  for (uint64_t seed = 0; seed < 16; ++seed) {
    MemoryStore store;
    WriteBatch batch;
    batch.Put("a", "1");
    batch.Put("b", "1");
    ASSERT_TRUE(store.Write(batch, Durability::kUnsynced).ok());
    store.Crash(seed);
    EXPECT_EQ(store.Get("a").ok(), store.Get("b").ok());
  }
}

TEST(MemoryStore, AFailedWriteHasNoEffect) {
  MemoryStore store;
  store.FailWrites(1);
  EXPECT_FALSE(store.Write(Put("a", "1"), Durability::kSynced).ok());
  EXPECT_FALSE(store.Get("a").ok());
  EXPECT_TRUE(store.Write(Put("a", "1"), Durability::kSynced).ok());
}

TEST(PrefixEnd, IsTheSmallestKeyAboveThePrefix) {
  EXPECT_EQ(PrefixEnd("a"), "b");
  EXPECT_EQ(PrefixEnd(std::string("a\xff", 2)), "b");
  EXPECT_EQ(PrefixEnd("\xff"), "");
  EXPECT_EQ(PrefixEnd(""), "");
}

}  // namespace
}  // namespace troupe
