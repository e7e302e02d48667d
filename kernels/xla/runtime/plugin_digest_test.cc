#include "kernels/xla/runtime/plugin_digest.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <string>

#include "base/faulty_file_system.h"
#include "base/temporary_directory.h"

namespace troupe::kernels::xla {
namespace {

class PluginDigestTest : public testing::Test {
 protected:
  void Write(const std::string& path, const std::string& bytes) {
    auto file = disk_.Create(path, CreateMode::kTruncate);
    ASSERT_TRUE(file.ok() && (*file)->Append(AsBytes(bytes)).ok() && (*file)->Close().ok());
  }
  std::string Digest() {
    const auto digest = PluginDigest(files_, plugin_, folder_);
    EXPECT_TRUE(digest.ok()) << ToString(digest.status());
    return digest.ok() ? *digest : "";
  }
  int Reads() const { return files_.Calls(FileOperation::kMap, plugin_); }

  TemporaryDirectory temporary_;
  PosixFileSystem disk_;
  FaultyFileSystem files_{disk_};
  const std::string plugin_ = temporary_.Child("plugin.so");
  const std::string folder_ = temporary_.Child("executables");
};

// sha256sum of "abc".
constexpr char kAbc[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

TEST_F(PluginDigestTest, IsReadOnce) {
  Write(plugin_, "abc");
  EXPECT_EQ(Digest(), kAbc);
  EXPECT_EQ(Digest(), kAbc);
  EXPECT_EQ(Reads(), 1);
}

TEST_F(PluginDigestTest, IsThatOfTheFileThatIsThereNow) {
  Write(plugin_, "abc");
  const auto written = std::filesystem::last_write_time(plugin_);
  EXPECT_EQ(Digest(), kAbc);
  Write(plugin_, "abd");  // has the same size
  std::filesystem::last_write_time(plugin_, written);
  const std::string changed = Digest();
  EXPECT_NE(changed, kAbc);
  Write(temporary_.Child("new.so"), "abc");
  std::filesystem::rename(temporary_.Child("new.so"), plugin_);
  EXPECT_EQ(Digest(), kAbc);
  EXPECT_EQ(Reads(), 3);
}

TEST_F(PluginDigestTest, ADamagedFileOfTheFolderIsReplaced) {
  Write(plugin_, "abc");
  EXPECT_EQ(Digest(), kAbc);
  const auto kept = disk_.List(folder_);
  ASSERT_EQ(kept->size(), 1u);
  const std::string path = JoinPath(folder_, kept->front().name);
  const std::string good = *ReadFile(disk_, path, 4096, SymbolicLinks::kRefuse);
  std::string other = good;
  other[good.size() - 70] = other[good.size() - 70] == '0' ? '1' : '0';  // a digit of the digest
  for (const std::string& bytes : {std::string(), std::string(200, 'a'), good + "x", other}) {
    Write(path, bytes);
    EXPECT_EQ(Digest(), kAbc);
  }
  EXPECT_EQ(Reads(), 5);
  EXPECT_EQ(*ReadFile(disk_, path, 4096, SymbolicLinks::kRefuse), good);
}

TEST_F(PluginDigestTest, AFolderThatCannotBeWrittenIsPassedOver) {
  Write(plugin_, "abc");
  files_.Add({.operation = FileOperation::kWrite,
              .path_contains = folder_,
              .calls = 2,
              .error_number = ENOSPC});
  EXPECT_EQ(Digest(), kAbc);
  EXPECT_EQ(Digest(), kAbc);
  EXPECT_EQ(Reads(), 2);
}

TEST_F(PluginDigestTest, APluginThatCannotBeReadIsAnError) {
  EXPECT_EQ(PluginDigest(files_, plugin_, folder_).status().code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace troupe::kernels::xla
