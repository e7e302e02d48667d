#include "checkpoint/read/verify.h"

#include <algorithm>
#include <utility>

#include "base/aligned_memory.h"
#include "base/failure_cause.h"
#include "checkpoint/format/digest.h"
#include "checkpoint/format/manifest.h"
#include "checkpoint/format/safetensors.h"
#include "checkpoint/read/shard_reader.h"

namespace troupe {
namespace {

constexpr std::string_view kNoManifest =
    "it is missing: the directory is no checkpoint of Troupe, or its write did not end, or the "
    "file was removed";

// The parts of a file that a failure concerns: VerifyFailure.tensors and few_tensors.
struct DamagedParts {
  std::string all, few;
};

DamagedParts PartsWithin(const v1::ShardFile& shard, int64_t begin, int64_t end) {
  return {TensorsWithin(shard, begin, end, shard.tensors_size()),
          TensorsWithin(shard, begin, end, kNamesInErrors)};
}

const DamagedParts kHeader = {"the header", "the header"};

// Classifies a failure to open or read a file in `directory`: DATA_LOSS, or the code of an error
// that does not show whether the file is damaged.
StatusCode Meaning(FileSystem& files, const std::string& directory, const Status& status) {
  // A fault of this host or of the job's paths.
  if (!AttachedCause(status).empty()) return status.code();
  switch (status.code()) {
    case StatusCode::kCancelled:
    case StatusCode::kPermissionDenied:
    case StatusCode::kUnavailable:
      return status.code();
    case StatusCode::kNotFound: {
      // Without its directory the folder may simply not be mounted here.
      const auto info = files.Stat(directory, SymbolicLinks::kFollow);
      return info.ok() ? StatusCode::kDataLoss : info.status().code();
    }
    default:
      return StatusCode::kDataLoss;
  }
}

// REQUIRES: `buffer` holds one digest block, or the whole file if that is smaller.
void VerifyShard(FileSystem& files, const std::string& directory, const v1::ShardFile& shard,
                 std::span<std::byte> buffer, const std::atomic<bool>* stop, VerifyReport& report) {
  const auto fail = [&](const DamagedParts& parts, std::string reason) {
    report.failures.push_back({shard.name(), parts.all, parts.few, std::move(reason)});
  };
  const auto fail_to_read = [&](const DamagedParts& parts, const Status& status) {
    report.failures.push_back({shard.name(), parts.all, parts.few, std::string(Message(status)),
                               Meaning(files, directory, status)});
  };
  const auto file = files.Open(JoinPath(directory, shard.name()), SymbolicLinks::kRefuse);
  if (!file.ok()) return fail_to_read({}, file.status());
  if ((*file)->size() != shard.bytes()) {
    // The tensors beyond the end of a truncated file are lost.
    const bool cut = (*file)->size() < shard.bytes();
    return fail(cut ? PartsWithin(shard, (*file)->size(), shard.bytes()) : DamagedParts(),
                fmt::format("size {} is not {}, the size that was written", (*file)->size(),
                            shard.bytes()));
  }
  FileChecksums checksums;
  bool blocks_match = true;
  for (int64_t i = 0; i < DigestBlocks(shard.bytes()); ++i) {
    const int64_t begin = i * kDigestBlockBytes;
    const int64_t end = std::min(begin + kDigestBlockBytes, shard.bytes());
    if (stop != nullptr && stop->load())
      return fail_to_read({}, Cancelled("verification was stopped"));
    const auto block = buffer.first(static_cast<size_t>(end - begin));
    if (const Status read = (*file)->ReadAt(begin, block); !read.ok()) {
      return fail_to_read(PartsWithin(shard, begin, end), read);
    }
    report.bytes += end - begin;
    checksums.Append(block);
    if (checksums.block_crc32c().back() != shard.block_crc32c(static_cast<int>(i))) {
      blocks_match = false;
      fail(PartsWithin(shard, begin, end),
           fmt::format("bytes {} to {} (one checksum block) differ from what was written", begin,
                       end));
    }
  }
  if (!blocks_match) return;
  if (const std::string digest = checksums.Digest(); digest != shard.digest()) {
    return fail({}, fmt::format("digest {} is not {}", digest, shard.digest()));
  }
  const auto header = ReadSafetensorsHeader(**file);
  if (!header.ok()) return fail_to_read(kHeader, header.status());
  if (const Status match = MatchHeader(shard, *header); !match.ok()) {
    fail(kHeader, std::string(Message(match)));
  }
}

}  // namespace

std::string TextOf(const VerifyFailure& failure) {
  if (failure.tensors.empty()) return fmt::format("{}: {}", failure.file, failure.reason);
  return fmt::format("{}: {}; this concerns {}", failure.file, failure.reason, failure.few_tensors);
}

Status VerifyReport::ToStatus() const {
  if (failures.empty()) return OkStatus();
  const auto damage = std::ranges::find(failures, StatusCode::kDataLoss, &VerifyFailure::code);
  const VerifyFailure& first = damage != failures.end() ? *damage : failures.front();
  return MakeStatus(
      first.code,
      fmt::format("{}{}", TextOf(first),
                  failures.size() == 1 ? "" : fmt::format(" (and {} more)", failures.size() - 1)));
}

VerifyReport VerifyCheckpoint(FileSystem& files, const std::string& directory,
                              std::string_view manifest_digest, const std::atomic<bool>* stop) {
  VerifyReport report;
  const auto manifest = ReadManifest(files, directory, manifest_digest);
  if (!manifest.ok()) {
    const StatusCode meaning = Meaning(files, directory, manifest.status());
    const bool is_absent =
        manifest.status().code() == StatusCode::kNotFound && meaning == StatusCode::kDataLoss;
    report.failures.push_back(
        {.file = kManifestFileName,
         .reason = is_absent ? std::string(kNoManifest) : std::string(Message(manifest.status())),
         .code = meaning});
    return report;
  }
  report.step = manifest->state().step();
  report.files = manifest->shards_size();
  int64_t largest = 0;
  for (const v1::ShardFile& shard : manifest->shards()) largest = std::max(largest, shard.bytes());
  const auto buffer = AlignedMemory::Make(std::min(largest, kDigestBlockBytes));
  if (!buffer.ok()) {
    report.failures.push_back(
        {.reason = std::string(Message(buffer.status())), .code = buffer.status().code()});
    return report;
  }
  for (const v1::ShardFile& shard : manifest->shards()) {
    VerifyShard(files, directory, shard, buffer->bytes(), stop, report);
  }
  return report;
}

}  // namespace troupe
