#include "kernels/xla/runtime/program_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/faulty_file_system.h"
#include "base/temporary_directory.h"
#include "kernels/xla/pjrt/plugin_file.h"

namespace troupe::kernels::xla {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

class FakeProgram final : public Program {
 public:
  FakeProgram(std::string bytes, bool loaded) : bytes_(std::move(bytes)), loaded_(loaded) {}
  StatusOr<std::vector<std::unique_ptr<Buffer>>> Run(std::span<const Buffer* const>,
                                                     const Launch&) override {
    return Unimplemented("a fake");
  }
  StatusOr<std::string> Serialize() const override {
    if (bytes_.find("secret") != std::string::npos) return Unimplemented("cannot be written");
    return bytes_;
  }
  bool loaded() const override { return loaded_; }

 private:
  const std::string bytes_;
  const bool loaded_;
};

// "Compiles" a text to its bytes and counts.
class FakeClient final : public Client {
 public:
  explicit FakeClient(const std::string& plugin_path) {
    plugin_ = {.path = plugin_path,
               .platform = "cpu",
               .platform_version = "1",
               .api_minor = 81,
               .threads = 1};
  }
  const PluginFacts& plugin() const override { return plugin_; }
  const std::vector<DeviceFacts>& devices() const override { return devices_; }
  StatusOr<std::unique_ptr<Program>> Compile(std::string_view text, const Options&,
                                             std::span<const int>) override {
    ++compiled;
    if (text == "wrong") return InvalidArgument("line 1 is wrong");
    return std::make_unique<FakeProgram>("code of " + std::string(text), false);
  }
  std::string OptionBytes(const Options& options, std::span<const int> devices) const override {
    return fmt::format("{} {}", options.size(), fmt::join(devices, ","));
  }
  StatusOr<std::unique_ptr<Program>> Load(std::string_view bytes, std::span<const int>) override {
    if (!refusal.empty()) return Internal("{}", refusal);
    return std::make_unique<FakeProgram>(std::string(bytes), true);
  }
  StatusOr<std::unique_ptr<Buffer>> Upload(model::DType, std::span<const int64_t>,
                                           std::span<const std::byte>, int) override {
    return Unimplemented("a fake");
  }

  std::atomic<int> compiled = 0;
  std::string refusal;  // the error of Load; empty: it loads
  PluginFacts plugin_;

 private:
  std::vector<DeviceFacts> devices_ = {{.kind = "cpu"}, {.kind = "cpu", .id = 1}};
};

class ProgramCacheTest : public testing::Test {
 protected:
  void SetUp() override {
    auto file = disk_.Create(plugin_, CreateMode::kExclusive);
    ASSERT_TRUE(file.ok() && (*file)->Append(AsBytes("code")).ok() && (*file)->Close().ok());
  }
  std::unique_ptr<ProgramCache> Cache(Options options = {}) {
    client_.plugin_.file = FileIdentity(plugin_);
    return CacheOfLoadedPlugin(std::move(options));
  }
  std::unique_ptr<ProgramCache> CacheOfLoadedPlugin(Options options = {}) {
    return std::make_unique<ProgramCache>(
        client_, std::move(options),
        std::make_unique<ExecutableCache>(files_, temporary_.Child("executables"),
                                          kMostExecutableBytes));
  }

  TemporaryDirectory temporary_;
  const std::string plugin_ = temporary_.Child("plugin.so");
  PosixFileSystem disk_;
  FaultyFileSystem files_{disk_};
  FakeClient client_{plugin_};
};

TEST_F(ProgramCacheTest, CompilesAProgramOnceInAProcessAndOnceOnAHost) {
  auto first = Cache();
  const auto a = first->Find("a", {0}, "forward");
  EXPECT_EQ(*first->Find("a", {0}, "forward"), *a);
  EXPECT_FALSE((*a)->loaded());
  auto second = Cache();
  EXPECT_TRUE((*second->Find("a", {0}, "forward"))->loaded());
  EXPECT_EQ(*(*second->Find("a", {0}, "forward"))->Serialize(), "code of a");
  EXPECT_EQ(client_.compiled, 1);
  EXPECT_EQ(first->compilation().compiled, 1);
  EXPECT_EQ(first->compilation().cache_hits, 0);
  EXPECT_EQ(second->compilation().compiled, 0);
  EXPECT_EQ(second->compilation().cache_hits, 1);
  EXPECT_THAT(second->compilation().programs, ElementsAre("forward"));
  EXPECT_THAT(second->compilation().cache_faults, IsEmpty());
  EXPECT_EQ(second->compilation().plugin, "plugin.so: cpu, PJRT 0.81");
}

TEST_F(ProgramCacheTest, WithoutAFolderEachProcessCompiles) {
  for (int process = 0; process < 2; ++process) {
    ProgramCache cache(client_, {});
    EXPECT_TRUE(cache.Find("a", {0}, "forward").ok());
    EXPECT_EQ(cache.compilation().compiled, 1);
  }
}

TEST_F(ProgramCacheTest, TakesNoProgramThatSomethingElseCompiled) {
  EXPECT_TRUE(Cache()->Find("a", {0}, "").ok());
  EXPECT_FALSE((*Cache()->Find("b", {0}, ""))->loaded()) << "another text";
  EXPECT_FALSE((*Cache()->Find("a", {1}, ""))->loaded()) << "another device";
  EXPECT_FALSE((*Cache({{"level", true}})->Find("a", {0}, ""))->loaded()) << "another option";
  client_.plugin_.threads = 2;
  EXPECT_FALSE((*Cache()->Find("a", {0}, ""))->loaded()) << "another number of threads";
  client_.plugin_.topology = "avx2";
  EXPECT_FALSE((*Cache()->Find("a", {0}, ""))->loaded()) << "another host";
  client_.plugin_.platform_version = "2";
  EXPECT_FALSE((*Cache()->Find("a", {0}, ""))->loaded()) << "another version";
  auto file = disk_.Create(plugin_, CreateMode::kTruncate);
  ASSERT_TRUE(file.ok() && (*file)->Append(AsBytes("node")).ok() && (*file)->Close().ok());
  EXPECT_FALSE((*Cache()->Find("a", {0}, ""))->loaded()) << "another plugin";
  EXPECT_TRUE((*Cache()->Find("a", {0}, ""))->loaded());
}

// A process runs the plugin that it has loaded, whatever its file is now.
TEST_F(ProgramCacheTest, AProcessWhosePluginWasReplacedNeitherTakesNorKeepsPrograms) {
  EXPECT_TRUE(Cache()->Find("a", {0}, "").ok());
  auto file = disk_.Create(plugin_, CreateMode::kTruncate);
  ASSERT_TRUE(file.ok() && (*file)->Append(AsBytes("node")).ok() && (*file)->Close().ok());
  EXPECT_TRUE(Cache()->Find("of the new file", {0}, "").ok());
  client_.plugin_.file = "that of the code";
  auto stale = CacheOfLoadedPlugin();
  EXPECT_FALSE((*stale->Find("of the new file", {0}, ""))->loaded());
  EXPECT_FALSE((*stale->Find("b", {0}, ""))->loaded());
  EXPECT_THAT(stale->compilation().cache_faults,
              ElementsAre(Pair("the plugin's file was replaced after it was loaded", 1)));
  EXPECT_FALSE((*Cache()->Find("b", {0}, ""))->loaded()) << "the old plugin compiled it";
}

TEST_F(ProgramCacheTest, AnEntryThatThePluginRefusesIsCompiledAnewAndReplaced) {
  EXPECT_TRUE(Cache()->Find("a", {0}, "").ok());
  client_.refusal = "another version";
  auto refused = Cache();
  EXPECT_FALSE((*refused->Find("a", {0}, ""))->loaded());
  EXPECT_THAT(refused->compilation().cache_faults,
              ElementsAre(Pair("an entry is refused by the plugin", 1)));
  client_.refusal.clear();
  EXPECT_TRUE((*Cache()->Find("a", {0}, ""))->loaded());
}

TEST_F(ProgramCacheTest, AProgramThatThePluginCannotWriteIsCounted) {
  auto cache = Cache();
  EXPECT_TRUE(cache->Find("secret", {0}, "").ok());
  EXPECT_THAT(cache->compilation().cache_faults,
              ElementsAre(Pair("the plugin cannot write a program", 1)));
}

TEST_F(ProgramCacheTest, AFullDiskIsCountedAndTheProgramRuns) {
  auto cache = Cache();
  files_.Add({.operation = FileOperation::kWrite,
              .path_contains = ".xla",
              .calls = 2,
              .error_number = ENOSPC});
  EXPECT_TRUE(cache->Find("a", {0}, "").ok());
  EXPECT_TRUE(cache->Find("b", {0}, "").ok());
  EXPECT_THAT(cache->compilation().cache_faults,
              ElementsAre(Pair("an entry cannot be written: No space left on device", 2)));
}

TEST_F(ProgramCacheTest, APluginThatCannotBeReadHasNoEntries) {
  ASSERT_TRUE(disk_.Remove(plugin_).ok());
  for (int process = 0; process < 2; ++process) {
    auto cache = Cache();
    EXPECT_FALSE((*cache->Find("a", {0}, ""))->loaded());
    EXPECT_THAT(cache->compilation().cache_faults,
                ElementsAre(Pair("the plugin's file cannot be read", 1)));
  }
}

TEST_F(ProgramCacheTest, AnErrorIsNotKept) {
  auto cache = Cache();
  EXPECT_EQ(cache->Find("wrong", {0}, "").status(), InvalidArgument("line 1 is wrong"));
  EXPECT_FALSE(cache->Find("wrong", {0}, "").ok());
  EXPECT_EQ(client_.compiled, 2);
  EXPECT_THAT(cache->compilation().programs, IsEmpty());
}

TEST_F(ProgramCacheTest, OfSeveralThreadsOneCompiles) {
  auto cache = Cache();
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&] { EXPECT_TRUE(cache->Find("a", {0}, "").ok()); });
  }
  EXPECT_EQ(client_.compiled, 1);
}

}  // namespace
}  // namespace troupe::kernels::xla
