#include "base/rocksdb_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/temporary_directory.h"

namespace troupe {
namespace {

WriteBatch Put(std::string key, std::string value) {
  WriteBatch batch;
  batch.Put(std::move(key), std::move(value));
  return batch;
}

TEST(RocksDbStore, KeepsWhatWasWrittenAcrossReopening) {
  TemporaryDirectory folder;
  {
    auto store = RocksDbStore::Open(folder.Child("catalog"));
    ASSERT_TRUE(store.ok()) << ToString(store.status());
    WriteBatch batch;
    batch.Put("a/1", "one");
    batch.Put("a/2", "two");
    batch.Put("b", "three");
    batch.Delete("a/2");
    ASSERT_TRUE((*store)->Write(batch, Durability::kSynced).ok());
  }
  auto store = RocksDbStore::Open(folder.Child("catalog"));
  ASSERT_TRUE(store.ok()) << ToString(store.status());
  EXPECT_EQ(*(*store)->Get("a/1"), "one");
  EXPECT_EQ((*store)->Get("a/2").status().code(), StatusCode::kNotFound);
  int visited = 0;
  ASSERT_TRUE(ScanPrefix(**store, "a/", [&](std::string_view key, std::string_view value) {
                EXPECT_EQ(key, "a/1");
                EXPECT_EQ(value, "one");
                ++visited;
                return true;
              }).ok());
  EXPECT_EQ(visited, 1);
}

TEST(RocksDbStore, SaysThatAnotherProcessHasItOpen) {
  TemporaryDirectory folder;
  auto first = RocksDbStore::Open(folder.Child("catalog"));
  ASSERT_TRUE(first.ok());
  auto second = RocksDbStore::Open(folder.Child("catalog"));
  EXPECT_EQ(second.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(Message(second.status())), ::testing::HasSubstr("another coordinator"));
}

TEST(RocksDbStore, DropsATornLastRecordAndKeepsTheOnesBefore) {
  TemporaryDirectory folder;
  const std::string copy = folder.Child("copy");
  {
    auto store = RocksDbStore::Open(folder.Child("catalog"));
    ASSERT_TRUE(store.ok());
    ASSERT_TRUE((*store)->Write(Put("kept", "1"), Durability::kSynced).ok());
    ASSERT_TRUE((*store)->Write(Put("torn", std::string(100, 'x')), Durability::kUnsynced).ok());
    // A copy of the files of the open database is what a crash leaves.
    std::filesystem::copy(folder.Child("catalog"), copy);
  }
  std::filesystem::remove(copy + "/LOCK");
  int logs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(copy)) {
    if (entry.path().extension() != ".log" || entry.file_size() == 0) continue;
    std::filesystem::resize_file(entry.path(), entry.file_size() - 10);
    ++logs;
  }
  ASSERT_EQ(logs, 1);
  auto store = RocksDbStore::Open(copy);
  ASSERT_TRUE(store.ok()) << ToString(store.status());
  EXPECT_TRUE((*store)->Get("kept").ok());
  EXPECT_EQ((*store)->Get("torn").status().code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace troupe
