#include "base/store/rocksdb_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <vector>

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

// Imitates a full disk by another error: no file of this process may be longer than `bytes`.
void LimitFiles(rlim_t bytes) {
  signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{.rlim_cur = bytes, .rlim_max = RLIM_INFINITY};
  if (setrlimit(RLIMIT_FSIZE, &limit) != 0) std::_Exit(9);
}

TEST(RocksDbStore, AWriteThatFailsIsAnErrorFromThenOnAndNoAbort) {
  const TemporaryDirectory folder;
  const auto write_beyond_the_limit = [&] {
    auto store = RocksDbStore::Open(folder.Child("catalog"));
    if (!store.ok()) std::_Exit(1);
    LimitFiles(1 << 20);
    const WriteBatch large = Put("a", std::string(2 << 20, 'x'));
    const Status first = (*store)->Write(large, Durability::kSynced);
    const Status second = (*store)->Write(Put("b", "y"), Durability::kSynced);
    if (Message(first).find("File too large") == std::string_view::npos) std::_Exit(2);
    if (ToString(second) != ToString(first)) std::_Exit(3);
    store->reset();
    std::_Exit(0);
  };
  EXPECT_EXIT(write_beyond_the_limit(), ::testing::ExitedWithCode(0), "");
}

TEST(RocksDbStore, WithoutRoomForRecoveryItIsNotOpenedAndReportsIt) {
  const TemporaryDirectory folder;
  {
    auto store = RocksDbStore::Open(folder.Child("catalog"));
    ASSERT_TRUE(store.ok());
    ASSERT_TRUE((*store)->Write(Put("a", std::string(3 << 20, 'x')), Durability::kSynced).ok());
  }
  const auto open_below_the_limit = [&] {
    LimitFiles(2 << 20);
    const Status status = RocksDbStore::Open(folder.Child("catalog")).status();
    const std::string text = ToString(status);
    std::_Exit(text.find("bytes to be opened: File too large") == std::string::npos ? 1 : 0);
  };
  EXPECT_EXIT(open_below_the_limit(), ::testing::ExitedWithCode(0), "");
  auto store = RocksDbStore::Open(folder.Child("catalog"));
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_EQ((*store)->Get("a")->size(), size_t{3} << 20);
}

TEST(RocksDbStore, ReportsThatAnotherProcessHasItOpen) {
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
    // A copy of an open database's files is the state that a crash leaves.
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

// Writes forty numbered records, all acknowledged: twenty in tables and twenty in the log.
void WriteForty(const std::string& directory) {
  for (int life = 0; life < 2; ++life) {
    auto store = RocksDbStore::Open(directory);
    ASSERT_TRUE(store.ok()) << ToString(store.status());
    for (int i = 0; i < 20; ++i) {
      const int number = 20 * life + i;
      ASSERT_TRUE((*store)
                      ->Write(Put(fmt::format("k/{:02}", number), std::string(200, 'a' + i)),
                              Durability::kSynced)
                      .ok());
    }
  }
}

// Returns how many records are intact, or -1 if opening or reading reported the damage.
int IntactRecords(const std::string& directory) {
  auto store = RocksDbStore::Open(directory);
  if (!store.ok()) {
    EXPECT_THAT(std::string(Message(store.status())), ::testing::HasSubstr("rebuild-catalog"));
    return -1;
  }
  int intact = 0;
  const Status read = ScanPrefix(**store, "k/", [&](std::string_view key, std::string_view value) {
    const std::string expected = fmt::format("k/{:02}", intact);
    EXPECT_EQ(key, expected) << "a record is missing in between";
    EXPECT_EQ(value, std::string(200, 'a' + intact % 20));
    ++intact;
    return true;
  });
  return read.ok() ? intact : -1;
}

TEST(RocksDbStore, EveryFlippedBitAndEveryCutIsRefusedOrLosesNothing) {
  TemporaryDirectory folder;
  const std::string good = folder.Child("good");
  WriteForty(good);
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(good)) {
    if (entry.is_regular_file() && entry.file_size() > 0) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::mt19937_64 random(5);
  int refused = 0;
  for (int trial = 0; trial < 100; ++trial) {
    const std::string bad = folder.Child("bad");
    std::filesystem::remove_all(bad);
    std::filesystem::copy(good, bad);
    const std::filesystem::path path =
        std::filesystem::path(bad) / files[random() % files.size()].filename();
    const auto size = std::filesystem::file_size(path);
    const auto at = random() % size;
    if (trial % 2 == 0) {
      std::filesystem::resize_file(path, at);
    } else {
      std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
      file.seekg(static_cast<std::streamoff>(at));
      const char flipped = static_cast<char>(file.get() ^ (1 << random() % 8));
      file.seekp(static_cast<std::streamoff>(at));
      file.put(flipped);
    }
    const int intact = IntactRecords(bad);
    EXPECT_TRUE(intact == -1 || intact == 40)
        << path << (trial % 2 == 0 ? " cut at " : " changed at ") << at << " of " << size << ": "
        << intact << " records";
    refused += intact == -1;
  }
  EXPECT_GT(refused, 25);
}

TEST(RocksDbStore, ACutLogIsNoTornOneAndReportsWhatHelps) {
  TemporaryDirectory folder;
  const std::string path = folder.Child("catalog");
  WriteForty(path);
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    if (entry.path().extension() == ".log" && entry.file_size() > 0) {
      std::filesystem::resize_file(entry.path(), entry.file_size() - 10);
    }
  }
  const Status status = RocksDbStore::Open(path).status();
  EXPECT_EQ(status.code(), StatusCode::kDataLoss) << status;
  EXPECT_THAT(std::string(Message(status)), ::testing::HasSubstr("rebuild-catalog"));
}

TEST(RocksDbStore, ADamagedNoteOfWhatWasAcknowledgedReportsWhatHelpsAndThatHelps) {
  TemporaryDirectory folder;
  const std::string path = folder.Child("catalog");
  WriteForty(path);
  std::ofstream(path + "/ACKNOWLEDGED") << "nonsense";
  const Status status = RocksDbStore::Open(path).status();
  EXPECT_EQ(status.code(), StatusCode::kDataLoss) << status;
  EXPECT_THAT(std::string(Message(status)), ::testing::HasSubstr(path + "/ACKNOWLEDGED"));
  EXPECT_THAT(std::string(Message(status)), ::testing::HasSubstr("remove the file"));
  EXPECT_THAT(std::string(Message(status)), ::testing::HasSubstr("rebuild-catalog"));
  std::filesystem::remove(path + "/ACKNOWLEDGED");
  std::filesystem::create_directory(path + "/ACKNOWLEDGED");
  const Status directory = RocksDbStore::Open(path).status();
  EXPECT_EQ(directory.code(), StatusCode::kFailedPrecondition) << directory;
  EXPECT_THAT(std::string(Message(directory)),
              ::testing::HasSubstr("/ACKNOWLEDGED: is not a regular file; remove it"));
  std::filesystem::remove(path + "/ACKNOWLEDGED");
  EXPECT_EQ(IntactRecords(path), 40);
}

TEST(RocksDbStore, HasFiguresOfItsState) {
  const TemporaryDirectory folder;
  auto store = RocksDbStore::Open(folder.Child("catalog"));
  ASSERT_TRUE(store.ok()) << store.status();
  WriteBatch batch;
  batch.Put("key", std::string(10'000, 'x'));
  ASSERT_TRUE((*store)->Write(batch, Durability::kSynced).ok());
  const std::optional<StoreFigures> figures = (*store)->Figures();
  ASSERT_TRUE(figures.has_value());
  EXPECT_EQ(figures->keys, 1u);
  EXPECT_GT(figures->memory_bytes, 10'000u);
  EXPECT_EQ(figures->background_errors, 0u);
}

}  // namespace
}  // namespace troupe
