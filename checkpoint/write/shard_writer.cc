#include "checkpoint/write/shard_writer.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include "base/aligned_memory.h"
#include "base/check.h"
#include "base/durable_write.h"
#include "checkpoint/format/digest.h"

namespace troupe {
namespace {

// The size of one write: a whole number of digest blocks.
constexpr int64_t kPieceBytes = int64_t{8} << 20;
static_assert(kPieceBytes % kDigestBlockBytes == 0 && kPieceBytes % kStreamAlignment == 0);

int64_t RoundedUp(int64_t bytes) {
  return (bytes + kStreamAlignment - 1) / kStreamAlignment * kStreamAlignment;
}

bool Stopped(const ShardWriteOptions& options) {
  return options.stop != nullptr && options.stop->load(std::memory_order_relaxed);
}

// Produces the bytes of the file in order from the head and the tensors.
class Gatherer {
 public:
  Gatherer(const ShardLayout& layout, const std::vector<ShardTensor>& tensors)
      : layout_(layout), tensors_(tensors) {}

  // Fills `out` with the next bytes of the file.
  Status Fill(std::span<std::byte> out) {
    if (at_ < HeadBytes()) {
      const std::span<const std::byte> rest =
          AsBytes(layout_.head).subspan(static_cast<size_t>(at_));
      const size_t bytes = std::min(rest.size(), out.size());
      std::copy_n(rest.begin(), bytes, out.begin());
      Pass(bytes, &out);
    }
    while (!out.empty() && next_ < layout_.order.size()) {
      const ShardTensor& tensor = tensors_[layout_.order[next_]];
      const int64_t left = *DenseBytes(tensor.slice.box.shape, tensor.slice.dtype) - within_;
      const size_t bytes = std::min(static_cast<size_t>(left), out.size());
      TROUPE_RETURN_IF_ERROR(CopyPart(tensor, within_, out.first(bytes)));
      within_ += static_cast<int64_t>(bytes);
      if (static_cast<int64_t>(bytes) == left) {
        ++next_;
        within_ = 0;
      }
      Pass(bytes, &out);
    }
    return OkStatus();
  }

 private:
  int64_t HeadBytes() const { return static_cast<int64_t>(layout_.head.size()); }
  void Pass(size_t bytes, std::span<std::byte>* out) {
    *out = out->subspan(bytes);
    at_ += static_cast<int64_t>(bytes);
  }

  const ShardLayout& layout_;
  const std::vector<ShardTensor>& tensors_;
  int64_t at_ = 0;      // offset in the file
  size_t next_ = 0;     // position in the layout's order
  int64_t within_ = 0;  // bytes of the next tensor already produced
};

void AddChecksums(const FileChecksums& checksums, v1::ShardFile& shard) {
  for (const uint32_t crc : checksums.block_crc32c()) shard.add_block_crc32c(crc);
  shard.set_digest(checksums.Digest());
}

// Writes the file of the shard durably; `write` fills it.
Status WriteShardFile(FileSystem& files, const std::string& directory, const ShardLayout& layout,
                      IoRing* ring, const ShardWriteOptions& options,
                      const std::function<Status(StreamingFile&)>& write) {
  const std::string path = JoinPath(directory, layout.shard.name());
  const auto there = files.Stat(path, SymbolicLinks::kRefuse);
  if (there.ok()) return AlreadyExists("{}: the shard of this attempt is already written", path);
  if (there.status().code() != StatusCode::kNotFound) return there.status();
  const auto fill = [&](StreamingFile& file) -> Status {
    if (options.method != nullptr) *options.method = file.method();
    TROUPE_RETURN_IF_ERROR(write(file));
    return Stopped(options) ? Cancelled("{}: stopped", path) : OkStatus();
  };
  return StreamFileDurably(
      files, path, {.size_bytes = layout.bytes, .ring = ring, .best_method = options.best_method},
      "checkpoint.shard", fill);
}

}  // namespace

Status CopyPart(const ShardTensor& tensor, int64_t at, std::span<std::byte> to) {
  if (tensor.read) return tensor.read(at, to);
  std::copy_n(tensor.data.begin() + static_cast<std::ptrdiff_t>(at), to.size(), to.begin());
  return OkStatus();
}

StatusOr<v1::ShardFile> WriteShard(FileSystem& files, const std::string& directory, int rank,
                                   const std::vector<ShardTensor>& tensors,
                                   const ShardWriteOptions& options) {
  std::vector<GlobalSlice> slices;
  for (const ShardTensor& tensor : tensors) slices.push_back(tensor.slice);
  TROUPE_ASSIGN_OR_RETURN(ShardLayout layout, LayOutShard(rank, slices));
  for (const ShardTensor& tensor : tensors) {
    const int64_t bytes = *DenseBytes(tensor.slice.box.shape, tensor.slice.dtype);
    TROUPE_CHECK(tensor.read || static_cast<int64_t>(tensor.data.size()) == bytes,
                 "tensor {}: {} bytes for {}", tensor.slice.name, tensor.data.size(), bytes);
  }
  const int64_t stage_bytes = std::min(kPieceBytes, RoundedUp(layout.bytes));
  TROUPE_ASSIGN_OR_RETURN(const AlignedMemory stages,
                          AlignedMemory::Make(stage_bytes * StreamingFile::kSlots));
  v1::ShardFile shard = layout.shard;
  shard.set_bytes(layout.bytes);
  const std::unique_ptr<IoRing> ring = MakeStreamingRing(stages.bytes());
  FileChecksums checksums;
  Gatherer gatherer(layout, tensors);
  TROUPE_RETURN_IF_ERROR(WriteShardFile(
      files, directory, layout, ring.get(), options, [&](StreamingFile& file) -> Status {
        int slot = 0;
        for (int64_t at = 0; at < layout.bytes; at += stage_bytes) {
          if (Stopped(options)) return Cancelled("{}: stopped", layout.shard.name());
          const auto stage = stages.bytes().subspan(static_cast<size_t>(slot * stage_bytes),
                                                    static_cast<size_t>(stage_bytes));
          const int64_t bytes = std::min(stage_bytes, layout.bytes - at);
          const auto piece = stage.first(static_cast<size_t>(bytes));
          TROUPE_RETURN_IF_ERROR(file.Wait(slot));
          TROUPE_RETURN_IF_ERROR(gatherer.Fill(piece));
          checksums.Append(piece);
          TROUPE_RETURN_IF_ERROR(
              file.StartWrite(slot, at, stage.first(static_cast<size_t>(RoundedUp(bytes)))));
          slot = (slot + 1) % StreamingFile::kSlots;
        }
        return OkStatus();
      }));
  AddChecksums(checksums, shard);
  return shard;
}

StatusOr<v1::ShardFile> WriteShardImage(FileSystem& files, const std::string& directory,
                                        const ShardLayout& layout, std::span<std::byte> image,
                                        const ShardWriteOptions& options) {
  TROUPE_CHECK(static_cast<int64_t>(image.size()) == RoundedUp(layout.bytes), "{} bytes for {}",
               image.size(), layout.bytes);
  v1::ShardFile shard = layout.shard;
  shard.set_bytes(layout.bytes);
  const auto content = image.first(static_cast<size_t>(layout.bytes));
  FileChecksums checksums;
  TROUPE_RETURN_IF_ERROR(WriteShardFile(
      files, directory, layout, options.ring, options, [&](StreamingFile& file) -> Status {
        int slot = 0;
        for (int64_t at = 0; at < layout.bytes; at += kPieceBytes) {
          if (Stopped(options)) return Cancelled("{}: stopped", layout.shard.name());
          const auto first = static_cast<size_t>(at);
          const auto bytes =
              static_cast<size_t>(std::min(kPieceBytes, static_cast<int64_t>(image.size()) - at));
          checksums.Append(content.subspan(first, std::min(bytes, content.size() - first)));
          TROUPE_RETURN_IF_ERROR(file.StartWrite(slot, at, image.subspan(first, bytes)));
          slot = (slot + 1) % StreamingFile::kSlots;
        }
        return OkStatus();
      }));
  AddChecksums(checksums, shard);
  return shard;
}

}  // namespace troupe
