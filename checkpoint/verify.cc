#include "checkpoint/verify.h"

#include <algorithm>

#include "checkpoint/digest.h"
#include "checkpoint/manifest.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/shard_reader.h"

namespace troupe {
namespace {

std::string AllTensorsWithin(const v1::ShardFile& shard, int64_t begin, int64_t end) {
  return TensorsWithin(shard, begin, end, shard.tensors_size());
}

void VerifyShard(FileSystem& files, const std::string& directory, const v1::ShardFile& shard,
                 VerifyReport& report) {
  const auto fail = [&](std::string tensors, std::string reason) {
    report.failures.push_back({shard.name(), std::move(tensors), std::move(reason)});
  };
  const auto file = files.Open(JoinPath(directory, shard.name()), SymbolicLinks::kRefuse);
  if (!file.ok()) return fail("", std::string(Message(file.status())));
  if ((*file)->size() != shard.bytes()) {
    // The tensors behind the end of a file that was cut are the ones that are lost.
    const bool cut = (*file)->size() < shard.bytes();
    return fail(
        cut ? AllTensorsWithin(shard, (*file)->size(), shard.bytes()) : "",
        fmt::format("size {} is not {}, which was written", (*file)->size(), shard.bytes()));
  }
  FileChecksums checksums;
  bool blocks_match = true;
  std::vector<std::byte> block;
  for (int64_t i = 0; i < DigestBlocks(shard.bytes()); ++i) {
    const int64_t begin = i * kDigestBlockBytes;
    const int64_t end = std::min(begin + kDigestBlockBytes, shard.bytes());
    block.resize(static_cast<size_t>(end - begin));
    if (const Status read = (*file)->ReadAt(begin, block); !read.ok()) {
      return fail(AllTensorsWithin(shard, begin, end), std::string(Message(read)));
    }
    report.bytes += end - begin;
    checksums.Append(block);
    if (checksums.block_crc32c().back() != shard.block_crc32c(static_cast<int>(i))) {
      blocks_match = false;
      fail(AllTensorsWithin(shard, begin, end),
           fmt::format("bytes {} to {} are not what was written", begin, end));
    }
  }
  if (!blocks_match) return;
  if (const std::string digest = checksums.Digest(); digest != shard.digest()) {
    return fail("", fmt::format("digest {} is not {}", digest, shard.digest()));
  }
  const auto header = ReadSafetensorsHeader(**file);
  if (!header.ok()) return fail("the header", std::string(Message(header.status())));
  if (const Status match = MatchHeader(shard, *header); !match.ok()) {
    fail("the header", std::string(Message(match)));
  }
}

}  // namespace

Status VerifyReport::ToStatus() const {
  if (failures.empty()) return OkStatus();
  const VerifyFailure& first = failures.front();
  return DataLoss("{}{}{}: {}{}", first.file, first.tensors.empty() ? "" : ": ", first.tensors,
                  first.reason,
                  failures.size() == 1 ? "" : fmt::format(" (and {} more)", failures.size() - 1));
}

VerifyReport VerifyCheckpoint(FileSystem& files, const std::string& directory,
                              std::string_view manifest_digest) {
  VerifyReport report;
  const auto manifest = ReadManifest(files, directory, manifest_digest);
  if (!manifest.ok()) {
    report.failures.push_back({kManifestFileName, "", std::string(Message(manifest.status()))});
    return report;
  }
  report.step = manifest->state().step();
  report.files = manifest->shards_size();
  for (const v1::ShardFile& shard : manifest->shards()) {
    VerifyShard(files, directory, shard, report);
  }
  return report;
}

}  // namespace troupe
