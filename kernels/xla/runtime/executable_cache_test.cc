#include "kernels/xla/runtime/executable_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "base/faulty_file_system.h"
#include "base/temporary_directory.h"
#include "kernels/xla/runtime/executable_entry.h"

namespace troupe::kernels::xla {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

std::string Key(char letter) { return std::string(kEntryKeyBytes, letter); }

class ExecutableCacheTest : public testing::Test {
 protected:
  ExecutableCache Cache(int64_t most_bytes = kMostExecutableBytes) {
    return {files_, folder(), most_bytes};
  }
  std::string folder() const { return temporary_.Child("executables"); }
  std::string PathOf(char letter) const { return JoinPath(folder(), Key(letter) + ".xla"); }

  void Overwrite(char letter, const std::string& bytes) {
    auto file = disk_.Create(PathOf(letter), CreateMode::kTruncate);
    ASSERT_TRUE(file.ok() && (*file)->Append(AsBytes(bytes)).ok() && (*file)->Close().ok());
  }
  std::vector<std::string> Names() {
    std::vector<std::string> names;
    const StatusOr<std::vector<DirectoryEntry>> files = disk_.List(folder());
    EXPECT_TRUE(files.ok());
    for (const DirectoryEntry& file : files.value_or(std::vector<DirectoryEntry>()))
      names.push_back(file.name);
    return names;
  }
  // As if the entry had last been used `hours` ago.
  void Age(char letter, int hours) {
    std::filesystem::last_write_time(
        PathOf(letter), std::filesystem::file_time_type::clock::now() - std::chrono::hours(hours));
  }

  TemporaryDirectory temporary_;
  PosixFileSystem disk_;
  FaultyFileSystem files_{disk_};
};

TEST_F(ExecutableCacheTest, OutlivesTheProcess) {
  ExecutableCache first = Cache();
  EXPECT_EQ(first.Find(Key('a')), std::nullopt);
  first.Add(Key('a'), "code");
  ExecutableCache second = Cache();
  EXPECT_EQ(second.Find(Key('a')), "code");
  EXPECT_EQ(second.Find(Key('b')), std::nullopt);
  EXPECT_THAT(first.faults(), IsEmpty());
  EXPECT_THAT(second.faults(), IsEmpty());
  EXPECT_THAT(Names(), ElementsAre(Key('a') + ".xla"));
}

TEST_F(ExecutableCacheTest, AnEntryThatIsNotWhatWasWrittenIsPassedOverAndReplaced) {
  const std::string good = EncodeEntry(Key('a'), "code");
  std::string damaged = good, stale = good;
  damaged.back() = 'x';
  stale[8] = 99;
  const std::pair<std::string, const char*> kCases[] = {
      {damaged, "an entry is damaged"},
      {good.substr(0, good.size() - 1), "an entry is truncated"},
      {"", "an entry is truncated"},
      {stale, "an entry has another version of the format"},
      {EncodeEntry(Key('b'), "code"), "an entry has another key"},
      {std::string(200, '\x7f'), "an entry is of another kind"},
  };
  for (const auto& [bytes, reason] : kCases) {
    ExecutableCache cache = Cache();
    cache.Add(Key('a'), "code");
    Overwrite('a', bytes);
    EXPECT_EQ(cache.Find(Key('a')), std::nullopt) << reason;
    EXPECT_THAT(cache.faults(), ElementsAre(Pair(reason, 1)));
    cache.Add(Key('a'), "new");
    EXPECT_EQ(cache.Find(Key('a')), "new") << reason;
  }
}

TEST_F(ExecutableCacheTest, AnEntryThatCannotBeReadIsPassedOver) {
  ExecutableCache cache = Cache();
  cache.Add(Key('a'), "code");
  files_.Add({.operation = FileOperation::kRead, .path_contains = "", .error_number = EIO});
  EXPECT_EQ(cache.Find(Key('a')), std::nullopt);
  EXPECT_THAT(cache.faults(), ElementsAre(Pair("an entry cannot be read: Input/output error", 1)));
  EXPECT_EQ(cache.Find(Key('a')), "code");
}

TEST_F(ExecutableCacheTest, ALinkIsNotFollowed) {
  ExecutableCache cache = Cache();
  cache.Add(Key('b'), "code");
  std::filesystem::create_symlink(PathOf('b'), PathOf('a'));
  EXPECT_EQ(cache.Find(Key('a')), std::nullopt);
  EXPECT_EQ(cache.faults().size(), 1u);
}

TEST_F(ExecutableCacheTest, AFullDiskIsPassedOverAndLeavesNoFile) {
  ExecutableCache cache = Cache();
  files_.Add({.operation = FileOperation::kWrite,
              .path_contains = "",
              .calls = 3,
              .error_number = ENOSPC});
  for (const char letter : {'a', 'b', 'c'}) cache.Add(Key(letter), "code");
  EXPECT_THAT(cache.faults(),
              ElementsAre(Pair("an entry cannot be written: No space left on device", 3)));
  EXPECT_THAT(Names(), IsEmpty());
  cache.Add(Key('d'), "code");  // there is room again
  EXPECT_EQ(cache.Find(Key('d')), "code");
}

TEST_F(ExecutableCacheTest, AFailureAtEachCallLeavesTheOldEntryOrNone) {
  for (const FileOperation operation : {FileOperation::kCreate, FileOperation::kWrite,
                                        FileOperation::kClose, FileOperation::kRename}) {
    ExecutableCache cache = Cache();
    cache.Add(Key('a'), "old");
    files_.Add({.operation = operation, .path_contains = "", .error_number = EDQUOT});
    cache.Add(Key('a'), "new");
    EXPECT_EQ(cache.Find(Key('a')), "old");
    EXPECT_EQ(cache.faults().size(), 1u);
    EXPECT_THAT(Names(), ElementsAre(Key('a') + ".xla"));
  }
}

TEST_F(ExecutableCacheTest, AFolderThatCannotBeMadeIsPassedOver) {
  files_.Add({.operation = FileOperation::kMakeDirectory,
              .path_contains = "executables",
              .calls = 2,
              .error_number = EROFS});
  ExecutableCache cache = Cache();
  EXPECT_EQ(cache.Find(Key('a')), std::nullopt);
  EXPECT_THAT(cache.faults(), IsEmpty()) << "a folder that does not exist yet has no entry";
  cache.Add(Key('a'), "code");
  cache.Add(Key('a'), "code");
  EXPECT_THAT(cache.faults(),
              ElementsAre(Pair("an entry cannot be written: Read-only file system", 2)));
}

TEST_F(ExecutableCacheTest, AFileInPlaceOfTheFolderIsPassedOver) {
  auto file = disk_.Create(folder(), CreateMode::kExclusive);
  ASSERT_TRUE(file.ok() && (*file)->Close().ok());
  ExecutableCache cache = Cache();
  EXPECT_EQ(cache.Find(Key('a')), std::nullopt);
  cache.Add(Key('a'), "code");
  EXPECT_FALSE(cache.faults().empty());
}

TEST_F(ExecutableCacheTest, TheEntriesThatWereNotUsedForTheLongestTimeGo) {
  const std::string code(100, 'c');
  const auto entry_bytes = static_cast<int64_t>(kEntryHeaderBytes + code.size());
  ExecutableCache cache = Cache(3 * entry_bytes);
  int hours = 30;
  for (const char letter : {'a', 'b', 'c'}) {
    cache.Add(Key(letter), code);
    Age(letter, hours--);
  }
  EXPECT_TRUE(cache.Find(Key('a')).has_value());  // used now
  cache.Add(Key('d'), code);
  EXPECT_THAT(Names(), ElementsAre(Key('a') + ".xla", Key('c') + ".xla", Key('d') + ".xla"));
  EXPECT_THAT(cache.faults(), IsEmpty());
}

TEST_F(ExecutableCacheTest, WhatAProcessLeftWhileItWroteGoesTooAndOtherFilesStay) {
  const std::string code(100, 'c');
  ExecutableCache cache = Cache(static_cast<int64_t>(kEntryHeaderBytes + code.size()));
  cache.Add(Key('a'), code);
  std::filesystem::rename(PathOf('a'), PathOf('a') + ".123-456");
  std::filesystem::last_write_time(
      PathOf('a') + ".123-456",
      std::filesystem::file_time_type::clock::now() - std::chrono::hours(2));
  auto other = disk_.Create(JoinPath(folder(), "notes.txt"), CreateMode::kExclusive);
  ASSERT_TRUE(other.ok() && (*other)->Append(AsBytes(code)).ok() && (*other)->Close().ok());
  cache.Add(Key('b'), code);
  EXPECT_THAT(Names(), ElementsAre(Key('b') + ".xla", "notes.txt"));
}

TEST_F(ExecutableCacheTest, AProgramLargerThanTheBoundIsNotStored) {
  ExecutableCache cache = Cache(200);
  cache.Add(Key('a'), "code");
  cache.Add(Key('b'), std::string(200, 'c'));
  EXPECT_THAT(cache.faults(), ElementsAre(Pair("a program is larger than the folder may be", 1)));
  EXPECT_THAT(Names(), ElementsAre(Key('a') + ".xla"));
}

TEST_F(ExecutableCacheTest, AnOldEntryThatCannotBeRemovedIsCounted) {
  ExecutableCache cache = Cache(200);
  cache.Add(Key('a'), std::string(80, 'c'));
  Age('a', 1);
  files_.Add({.operation = FileOperation::kRemove, .path_contains = "", .error_number = EACCES});
  cache.Add(Key('b'), std::string(80, 'c'));
  EXPECT_THAT(cache.faults(),
              ElementsAre(Pair("an old entry cannot be removed: Permission denied", 1)));
}

TEST_F(ExecutableCacheTest, TwoProcessesMayUseTheFolderAtOnce) {
  const auto code = [](char letter) { return std::string(1000, letter); };
  const auto work = [&](ExecutableCache* cache) {
    for (int round = 0; round < 20; ++round) {
      for (const char letter : {'a', 'b', 'c', 'd'}) {
        cache->Add(Key(letter), code(letter));
        const std::optional<std::string> found = cache->Find(Key(letter));
        EXPECT_EQ(found.value_or(code(letter)), code(letter));
      }
    }
  };
  const auto bound = static_cast<int64_t>(3 * (kEntryHeaderBytes + 1000));
  ExecutableCache first = Cache(bound), second = Cache(bound);
  {
    const std::jthread other(work, &first);
    work(&second);
  }
  for (const ExecutableCache* cache : {&first, &second}) {
    for (const auto& [reason, count] : cache->faults()) ADD_FAILURE() << reason << ": " << count;
  }
}

}  // namespace
}  // namespace troupe::kernels::xla
