#include "checkpoint/shard_reader.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/check.h"
#include "base/failpoint.h"
#include "checkpoint/digest.h"
#include "checkpoint/manifest.h"
#include "checkpoint/reshard.h"
#include "checkpoint/safetensors.h"

namespace troupe {
namespace {

// A rank's error goes into events and logs; `checkpoints verify` names every tensor.
constexpr int kNamesInErrors = 8;

}  // namespace

StatusOr<VerifiedFile> VerifiedFile::Open(FileSystem& files, const std::string& directory,
                                          const v1::ShardFile& shard) {
  VerifiedFile file;
  file.path_ = JoinPath(directory, shard.name());
  file.shard_ = &shard;
  TROUPE_ASSIGN_OR_RETURN(file.file_, files.Open(file.path_, SymbolicLinks::kRefuse));
  if (file.file_->size() != shard.bytes()) {
    return DataLoss("{}: size {} is not {}, which was written", file.path_, file.file_->size(),
                    shard.bytes());
  }
  return file;
}

Status VerifiedFile::Load(int64_t block) const {
  const int64_t begin = block * kDigestBlockBytes;
  const int64_t end = std::min(begin + kDigestBlockBytes, shard_->bytes());
  block_ = -1;
  bytes_.resize(static_cast<size_t>(end - begin));
  TROUPE_RETURN_IF_ERROR(file_->ReadAt(begin, bytes_));
  if (Crc32c(bytes_) != shard_->block_crc32c(static_cast<int>(block))) {
    return DataLoss("{}: bytes {} to {} are not what was written ({})", path_, begin, end,
                    TensorsWithin(*shard_, begin, end, kNamesInErrors));
  }
  block_ = block;
  return OkStatus();
}

Status VerifiedFile::ReadAt(int64_t offset, std::span<std::byte> out) const {
  TROUPE_CHECK(offset >= 0);
  if (static_cast<int64_t>(out.size()) > shard_->bytes() - offset) {
    return OutOfRange("{}: read of {} bytes at {} goes beyond its {} bytes", path_, out.size(),
                      offset, shard_->bytes());
  }
  while (!out.empty()) {
    const int64_t block = offset / kDigestBlockBytes;
    if (block != block_) TROUPE_RETURN_IF_ERROR(Load(block));
    const size_t within = static_cast<size_t>(offset % kDigestBlockBytes);
    const size_t bytes = std::min(out.size(), bytes_.size() - within);
    std::memcpy(out.data(), bytes_.data() + within, bytes);
    out = out.subspan(bytes);
    offset += static_cast<int64_t>(bytes);
  }
  return OkStatus();
}

std::string TensorsWithin(const v1::ShardFile& shard, int64_t begin, int64_t end, int names_max) {
  int64_t data_bytes = 0;
  for (const v1::TensorSlice& tensor : shard.tensors()) {
    data_bytes = std::max(data_bytes, tensor.data_end());
  }
  // The data end where the file ends.
  const int64_t header_bytes = shard.bytes() - data_bytes;
  std::string names;
  int found = 0;
  for (const v1::TensorSlice& tensor : shard.tensors()) {
    if (tensor.data_begin() + header_bytes >= end || tensor.data_end() + header_bytes <= begin) {
      continue;
    }
    if (++found <= names_max) names += (found == 1 ? "" : ", ") + tensor.name();
  }
  if (found > names_max) names += fmt::format(" and {} more", found - names_max);
  if (begin < header_bytes) return found == 0 ? "the header" : "the header, tensors " + names;
  return (found == 1 ? "tensor " : "tensors ") + names;
}

Status LoadSlices(FileSystem& files, const std::string& directory,
                  const v1::CheckpointManifest& manifest, std::span<const LoadTarget> targets) {
  std::vector<GlobalSlice> wanted;
  for (const LoadTarget& target : targets) {
    TROUPE_RETURN_IF_ERROR(ValidateSlice(target.slice));
    TROUPE_CHECK(static_cast<int64_t>(target.data.size()) ==
                     *DenseBytes(target.slice.box.shape, target.slice.dtype),
                 "tensor {}", target.slice.name);
    if (*DtypeBits(target.slice.dtype) % 8 != 0) {
      return InvalidArgument("tensor {}: {} has no whole bytes an element: it cannot be sliced",
                             target.slice.name, target.slice.dtype);
    }
    wanted.push_back(target.slice);
  }
  TROUPE_ASSIGN_OR_RETURN(const std::vector<SliceRead> reads, PlanReads(manifest, wanted));
  // A checkpoint with a file missing or cut short is bad for every rank, also for those that need
  // none of it.
  for (const v1::ShardFile& shard : manifest.shards()) {
    const std::string path = JoinPath(directory, shard.name());
    TROUPE_ASSIGN_OR_RETURN(const FileInfo info, files.Stat(path, SymbolicLinks::kRefuse));
    if (info.kind != FileKind::kRegular || info.size_bytes != shard.bytes()) {
      return DataLoss("{}: size {} is not {}, which was written, or it is no regular file", path,
                      info.size_bytes, shard.bytes());
    }
  }
  TROUPE_RETURN_IF_ERROR(HitFailpoint("checkpoint.load.verified"));
  std::optional<VerifiedFile> file;
  int64_t buffer_offset = 0;
  int open_shard = -1;
  for (const SliceRead& read : reads) {
    const v1::ShardFile& shard = manifest.shards(read.shard);
    if (read.shard != open_shard) {
      file.reset();
      TROUPE_ASSIGN_OR_RETURN(file, VerifiedFile::Open(files, directory, shard));
      const auto header = ReadSafetensorsHeader(*file);
      if (!header.ok()) return Annotate(header.status(), JoinPath(directory, shard.name()));
      TROUPE_RETURN_IF_ERROR(Annotate(MatchHeader(shard, *header), directory));
      buffer_offset = header->buffer_offset;
      open_shard = read.shard;
    }
    const v1::TensorSlice& stored = shard.tensors(read.tensor);
    const LoadTarget& target = targets[read.wanted];
    TROUPE_RETURN_IF_ERROR(ForEachRun(
        read.common, SliceOf(stored).box, target.slice.box, *DtypeBits(stored.dtype()) / 8,
        [&](int64_t source, int64_t destination, int64_t bytes) {
          return file->ReadAt(
              buffer_offset + stored.data_begin() + source,
              target.data.subspan(static_cast<size_t>(destination), static_cast<size_t>(bytes)));
        }));
  }
  return OkStatus();
}

}  // namespace troupe
