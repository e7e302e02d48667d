// Applies a thousand random corruptions to a small checkpoint: every one is detected.
#include <gtest/gtest.h>

#include <random>

#include "base/check.h"
#include "base/temporary_directory.h"
#include "checkpoint/format/manifest.h"
#include "checkpoint/read/shard_reader.h"
#include "checkpoint/read/verify.h"
#include "checkpoint/test_checkpoint.h"

namespace troupe {
namespace {

constexpr int kTrials = 1000;

// Loads as a rank does: verifies the manifest against the catalog's digest, then reads everything.
Status Load(FileSystem& files, const std::string& directory, const std::string& digest,
            const TestTensors& tensors) {
  TROUPE_ASSIGN_OR_RETURN(const auto manifest, ReadManifest(files, directory, digest));
  for (const auto& [name, values] : tensors) {
    std::vector<float> loaded(values.size());
    const int64_t rows = static_cast<int64_t>(values.size()) / 4;
    const LoadTarget target{{name, "F32", {rows, 4}, {{0, 0}, {rows, 4}}},
                            std::as_writable_bytes(std::span(loaded))};
    TROUPE_RETURN_IF_ERROR(LoadSlices(files, directory, manifest, std::span(&target, 1)));
    if (loaded != values) return Internal("{} was loaded, and is not what was saved", name);
  }
  return OkStatus();
}

TEST(Corruption, AThousandFlippedBitsCutTailsOverwritesAndAdditionsAreAllDetected) {
  const TemporaryDirectory folder;
  PosixFileSystem files;
  TestTensors tensors;
  for (int t = 0; t < 3; ++t) {
    for (int i = 0; i < 400; ++i) {
      tensors[fmt::format("w{}", t)].push_back(static_cast<float>(i * 7 + t) * 0.125f);
    }
  }
  const std::string directory = folder.Child("x");
  const std::string digest = WriteTestCheckpoint(files, directory, tensors, 2);
  ASSERT_TRUE(Load(files, directory, digest, tensors).ok());
  std::vector<std::string> paths;
  const std::vector<DirectoryEntry> entries = *files.List(directory);
  for (const DirectoryEntry& entry : entries) {
    paths.push_back(JoinPath(directory, entry.name));
  }
  ASSERT_EQ(paths.size(), 3u);
  const auto write = [&](const std::string& path, const std::string& bytes) {
    auto file = files.Create(path, CreateMode::kTruncate);
    TROUPE_CHECK_OK(file.status());
    TROUPE_CHECK_OK((*file)->Append(AsBytes(bytes)));
  };
  std::mt19937_64 random(23);
  for (int trial = 0; trial < kTrials; ++trial) {
    const std::string& path = paths[static_cast<size_t>(trial) % paths.size()];
    const std::string good = *ReadFile(files, path, 1 << 30, SymbolicLinks::kRefuse);
    std::string bad = good;
    switch (random() % 6) {
      case 0:
        bad.resize(random() % bad.size());
        break;
      case 1:
        bad += static_cast<char>(random());
        break;
      case 2: {  // a zeroed sector
        const size_t at = random() % bad.size();
        for (size_t i = at; i < std::min(at + 512, bad.size()); ++i) bad[i] = 0;
        break;
      }
      case 3:  // a byte is copied to another place
        std::swap(bad[random() % bad.size()], bad[random() % bad.size()]);
        break;
      default:
        bad[random() % bad.size()] ^= static_cast<char>(1 << random() % 8);
    }
    if (bad == good) continue;
    write(path, bad);
    EXPECT_FALSE(VerifyCheckpoint(files, directory, digest).ToStatus().ok()) << path << trial;
    const Status loaded = Load(files, directory, digest, tensors);
    EXPECT_FALSE(loaded.ok()) << path << " in trial " << trial;
    EXPECT_NE(loaded.code(), StatusCode::kInternal) << loaded;
    write(path, good);
  }
  EXPECT_TRUE(Load(files, directory, digest, tensors).ok());
}

}  // namespace
}  // namespace troupe
