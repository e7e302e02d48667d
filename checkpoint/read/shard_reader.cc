#include "checkpoint/read/shard_reader.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <mutex>
#include <thread>

#include "base/aligned_memory.h"
#include "base/check.h"
#include "base/failpoint.h"
#include "checkpoint/format/digest.h"
#include "checkpoint/format/manifest.h"
#include "checkpoint/format/safetensors.h"
#include "checkpoint/read/reshard.h"

namespace troupe {
namespace {

// DATA_LOSS unless `bytes` are what was written as digest block `block` of the file.
Status CheckBlock(const std::string& path, const v1::ShardFile& shard, int64_t block,
                  std::span<const std::byte> bytes) {
  if (Crc32c(bytes) == shard.block_crc32c(static_cast<int>(block))) return OkStatus();
  const int64_t begin = block * kDigestBlockBytes;
  const int64_t end = begin + static_cast<int64_t>(bytes.size());
  return DataLoss("{}: bytes {} to {} differ from what was written ({})", path, begin, end,
                  TensorsWithin(shard, begin, end, kNamesInErrors));
}

}  // namespace

StatusOr<VerifiedFile> VerifiedFile::Open(FileSystem& files, const std::string& directory,
                                          const v1::ShardFile& shard) {
  VerifiedFile file;
  file.path_ = JoinPath(directory, shard.name());
  file.shard_ = &shard;
  TROUPE_ASSIGN_OR_RETURN(file.file_, files.Open(file.path_, SymbolicLinks::kRefuse));
  if (file.file_->size() != shard.bytes()) {
    return DataLoss("{}: size {} is not {}, the size that was written", file.path_,
                    file.file_->size(), shard.bytes());
  }
  return file;
}

Status VerifiedFile::Load(int64_t block) const {
  const int64_t begin = block * kDigestBlockBytes;
  const int64_t end = std::min(begin + kDigestBlockBytes, shard_->bytes());
  block_ = -1;
  bytes_.resize(static_cast<size_t>(end - begin));
  TROUPE_RETURN_IF_ERROR(file_->ReadAt(begin, bytes_));
  TROUPE_RETURN_IF_ERROR(CheckBlock(path_, *shard_, block, bytes_));
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
  // The data end at the end of the file.
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

namespace {

// The size of one read: a whole number of digest blocks.
constexpr int64_t kReadPieceBytes = 2 * kDigestBlockBytes;
// The number of pieces in flight; one thread each reads, checks and copies them. A disk that is
// fast only with 32 MiB requested stays busy while some pieces are being checked.
constexpr int kThreads = 8;

// Requested bytes within one block, and their destination.
struct Run {
  int64_t begin = 0;  // offset in the file
  int64_t bytes = 0;
  std::byte* to = nullptr;
};

// Digest blocks [first, end) of a file that are read together, with their runs.
struct ReadPiece {
  int64_t first = 0;
  int64_t end = 0;
  std::span<const Run> runs;
};

// Collects the runs in file order; no run crosses the end of a block.
Status CollectRuns(const v1::ShardFile& shard, int64_t buffer_offset,
                   std::span<const SliceRead> reads, std::span<const LoadTarget> targets,
                   std::vector<Run>& runs) {
  runs.clear();
  for (const SliceRead& read : reads) {
    const v1::TensorSlice& stored = shard.tensors(read.tensor);
    const LoadTarget& target = targets[read.wanted];
    TROUPE_RETURN_IF_ERROR(ForEachRun(
        read.common, SliceOf(stored).box, target.slice.box, *DtypeBits(stored.dtype()) / 8,
        [&](int64_t source, int64_t destination, int64_t bytes) {
          int64_t begin = buffer_offset + stored.data_begin() + source;
          std::byte* to = target.data.data() + destination;
          while (bytes > 0) {
            const int64_t part = std::min(bytes, kDigestBlockBytes - begin % kDigestBlockBytes);
            runs.push_back({begin, part, to});
            begin += part;
            to += part;
            bytes -= part;
          }
          return OkStatus();
        }));
  }
  std::stable_sort(runs.begin(), runs.end(),
                   [](const Run& a, const Run& b) { return a.begin < b.begin; });
  return OkStatus();
}

std::vector<ReadPiece> CutIntoPieces(std::span<const Run> runs) {
  std::vector<ReadPiece> pieces;
  for (size_t i = 0; i < runs.size();) {
    ReadPiece piece;
    piece.first = runs[i].begin / kDigestBlockBytes;
    piece.end = piece.first + 1;
    size_t end = i;
    for (; end < runs.size(); ++end) {
      const int64_t block = runs[end].begin / kDigestBlockBytes;
      if (block > piece.end || (block + 1 - piece.first) * kDigestBlockBytes > kReadPieceBytes)
        break;
      piece.end = block + 1;
    }
    piece.runs = runs.subspan(i, end - i);
    pieces.push_back(piece);
    i = end;
  }
  return pieces;
}

// Reads the piece into `buffer`, verifies its blocks and copies its runs to their targets.
Status LoadPiece(const ReadableFile& file, const std::string& path, const v1::ShardFile& shard,
                 const ReadPiece& piece, std::span<std::byte> buffer) {
  const int64_t begin = piece.first * kDigestBlockBytes;
  const int64_t end = std::min(piece.end * kDigestBlockBytes, shard.bytes());
  const auto bytes = buffer.first(static_cast<size_t>(end - begin));
  TROUPE_RETURN_IF_ERROR(file.ReadAt(begin, bytes));
  for (int64_t block = piece.first; block < piece.end; ++block) {
    TROUPE_RETURN_IF_ERROR(CheckBlock(
        path, shard, block,
        bytes.subspan(static_cast<size_t>(block * kDigestBlockBytes - begin),
                      static_cast<size_t>(std::min(kDigestBlockBytes,
                                                   shard.bytes() - block * kDigestBlockBytes)))));
  }
  for (const Run& run : piece.runs) {
    std::memcpy(run.to, bytes.data() + (run.begin - begin), static_cast<size_t>(run.bytes));
  }
  return OkStatus();
}

// Loads all pieces with kThreads threads, one buffer each. Of the errors found, returns that of the
// first piece in the file.
Status LoadPieces(const ReadableFile& file, const std::string& path, const v1::ShardFile& shard,
                  std::span<const ReadPiece> pieces, std::span<const AlignedMemory> buffers) {
  std::atomic<size_t> next{0};
  std::mutex mutex;
  Status status;
  size_t failed = pieces.size();
  const auto work = [&](const AlignedMemory& buffer) {
    for (size_t i = next.fetch_add(1); i < pieces.size(); i = next.fetch_add(1)) {
      const Status loaded = LoadPiece(file, path, shard, pieces[i], buffer.bytes());
      if (loaded.ok()) continue;
      std::lock_guard lock(mutex);
      next.store(pieces.size());
      if (i < failed) {
        failed = i;
        status = loaded;
      }
    }
  };
  std::vector<std::thread> threads;
  for (size_t t = 1; t < std::min(buffers.size(), pieces.size()); ++t) {
    threads.emplace_back(work, std::cref(buffers[t]));
  }
  work(buffers[0]);
  for (std::thread& thread : threads) thread.join();
  return status;
}

}  // namespace

Status LoadSlices(FileSystem& files, const std::string& directory,
                  const v1::CheckpointManifest& manifest, std::span<const LoadTarget> targets) {
  std::vector<GlobalSlice> wanted;
  for (const LoadTarget& target : targets) {
    TROUPE_RETURN_IF_ERROR(ValidateSlice(target.slice));
    TROUPE_CHECK(static_cast<int64_t>(target.data.size()) ==
                     *DenseBytes(target.slice.box.shape, target.slice.dtype),
                 "tensor {}", target.slice.name);
    if (*DtypeBits(target.slice.dtype) % 8 != 0) {
      return InvalidArgument(
          "tensor {}: an element of {} is not a whole number of bytes, so the tensor cannot be "
          "sliced",
          target.slice.name, target.slice.dtype);
    }
    wanted.push_back(target.slice);
  }
  TROUPE_ASSIGN_OR_RETURN(const std::vector<SliceRead> reads, PlanReads(manifest, wanted));
  // A missing or truncated file makes the checkpoint unusable for every rank, also for those that
  // need none of it.
  for (const v1::ShardFile& shard : manifest.shards()) {
    const std::string path = JoinPath(directory, shard.name());
    TROUPE_ASSIGN_OR_RETURN(const FileInfo info, files.Stat(path, SymbolicLinks::kRefuse));
    if (info.kind != FileKind::kRegular || info.size_bytes != shard.bytes()) {
      return DataLoss(
          "{}: size {} is not {}, the size that was written, or it is not a regular file", path,
          info.size_bytes, shard.bytes());
    }
  }
  TROUPE_RETURN_IF_ERROR(HitFailpoint("checkpoint.load.verified"));
  std::vector<AlignedMemory> buffers;
  std::vector<Run> runs;
  for (size_t first = 0; first < reads.size();) {
    size_t end = first;
    while (end < reads.size() && reads[end].shard == reads[first].shard) ++end;
    const v1::ShardFile& shard = manifest.shards(reads[first].shard);
    const std::string path = JoinPath(directory, shard.name());
    TROUPE_ASSIGN_OR_RETURN(const VerifiedFile verified,
                            VerifiedFile::Open(files, directory, shard));
    const auto header = ReadSafetensorsHeader(verified);
    if (!header.ok()) return Annotate(header.status(), path);
    TROUPE_RETURN_IF_ERROR(Annotate(MatchHeader(shard, *header), directory));
    TROUPE_RETURN_IF_ERROR(CollectRuns(
        shard, header->buffer_offset, std::span(reads).subspan(first, end - first), targets, runs));
    const std::vector<ReadPiece> pieces = CutIntoPieces(runs);
    while (buffers.size() < std::min<size_t>(kThreads, pieces.size())) {
      TROUPE_ASSIGN_OR_RETURN(AlignedMemory buffer, AlignedMemory::Make(kReadPieceBytes));
      buffers.push_back(std::move(buffer));
    }
    if (!pieces.empty()) {
      TROUPE_RETURN_IF_ERROR(LoadPieces(verified.file(), path, shard, pieces, buffers));
    }
    first = end;
  }
  return OkStatus();
}

}  // namespace troupe
