#include "checkpoint/test_checkpoint.h"

#include <cstddef>
#include <span>

#include "base/check.h"
#include "base/durable_write.h"
#include "checkpoint/format/attempt.h"
#include "checkpoint/format/manifest.h"
#include "checkpoint/write/shard_writer.h"

namespace troupe {

std::string WriteTestCheckpoint(FileSystem& files, const std::string& directory,
                                const TestTensors& tensors, int ranks, v1::CheckpointManifest of) {
  TROUPE_CHECK_OK(MakeAttemptDirectory(files, directory));
  of.set_format_version(kManifestFormatVersion);
  for (int rank = 0; rank < ranks; ++rank) {
    std::vector<ShardTensor> parts;
    for (const auto& [name, values] : tensors) {
      const int64_t rows = static_cast<int64_t>(values.size()) / 4;
      const int64_t begin = rows * rank / ranks;
      const int64_t end = rows * (rank + 1) / ranks;
      if (begin == end) continue;
      const auto bytes = std::as_bytes(std::span(values));
      parts.push_back(
          {{name, "F32", {rows, 4}, {{begin, 0}, {end - begin, 4}}},
           bytes.subspan(static_cast<size_t>(begin) * 16, static_cast<size_t>(end - begin) * 16)});
    }
    auto shard = WriteShard(files, directory, rank, parts);
    TROUPE_CHECK_OK(shard.status());
    *of.add_shards() = *std::move(shard);
  }
  const auto written = WriteManifest(files, directory, of);
  TROUPE_CHECK_OK(written.status());
  return written->digest;
}

void ChangeFile(FileSystem& files, const std::string& path, void (*change)(std::string& bytes)) {
  auto bytes = ReadFile(files, path, 1 << 30, SymbolicLinks::kRefuse);
  TROUPE_CHECK_OK(bytes.status());
  change(*bytes);
  TROUPE_CHECK_OK(WriteFileDurably(files, path, AsBytes(*bytes)));
}

}  // namespace troupe
