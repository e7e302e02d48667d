#include "checkpoint/shard_writer.h"

#include <algorithm>
#include <map>

#include "base/check.h"
#include "base/failpoint.h"
#include "checkpoint/attempt.h"
#include "checkpoint/digest.h"
#include "checkpoint/manifest.h"
#include "checkpoint/safetensors.h"

namespace troupe {
namespace {

// Gathers bytes into blocks and hashes each in memory before it goes to the file: a checksum made
// from the file would bless whatever happened on the way.
class HashingWriter {
 public:
  explicit HashingWriter(WritableFile& file) : file_(file) {
    block_.reserve(static_cast<size_t>(kDigestBlockBytes));
  }

  Status Append(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const size_t room = static_cast<size_t>(kDigestBlockBytes) - block_.size();
      const auto part = bytes.first(std::min(room, bytes.size()));
      block_.insert(block_.end(), part.begin(), part.end());
      bytes = bytes.subspan(part.size());
      if (block_.size() == static_cast<size_t>(kDigestBlockBytes)) {
        TROUPE_RETURN_IF_ERROR(WriteBlock());
      }
    }
    return OkStatus();
  }

  // Writes what is left and puts size, digest and checksums into `shard`.
  Status Finish(v1::ShardFile& shard) {
    if (!block_.empty()) TROUPE_RETURN_IF_ERROR(WriteBlock());
    shard.set_bytes(bytes_);
    shard.set_digest(whole_.Finish());
    for (const uint32_t crc : block_crcs_) shard.add_block_crc32c(crc);
    return OkStatus();
  }

 private:
  Status WriteBlock() {
    block_crcs_.push_back(Crc32c(block_));
    whole_.Append(block_);
    TROUPE_RETURN_IF_ERROR(file_.Append(block_));
    bytes_ += static_cast<int64_t>(block_.size());
    block_.clear();
    return OkStatus();
  }

  WritableFile& file_;
  std::vector<std::byte> block_;
  std::vector<uint32_t> block_crcs_;
  Sha256 whole_;
  int64_t bytes_ = 0;
};

struct FileLayout {
  std::string head;           // what goes before the data
  std::vector<size_t> order;  // of the tensors in the file
  v1::ShardFile shard;        // name, rank and tensors
};

StatusOr<FileLayout> LayOut(int rank, const std::vector<ShardTensor>& tensors) {
  std::vector<GlobalSlice> slices;
  for (const ShardTensor& tensor : tensors) {
    TROUPE_RETURN_IF_ERROR(ValidateSlice(tensor.slice));
    const int64_t bytes = *DenseBytes(tensor.slice.box.shape, tensor.slice.dtype);
    TROUPE_CHECK(static_cast<int64_t>(tensor.data.size()) == bytes, "tensor {}: {} bytes for {}",
                 tensor.slice.name, tensor.data.size(), bytes);
    slices.push_back(tensor.slice);
  }
  const std::vector<std::string> keys = FileKeys(slices);
  std::map<std::string, size_t> index_of_key;
  std::vector<SafetensorsEntry> entries;
  std::map<std::string, std::string> metadata{{"troupe_format", "1"}};
  for (size_t i = 0; i < keys.size(); ++i) {
    const GlobalSlice& slice = slices[i];
    index_of_key[keys[i]] = i;
    entries.push_back({.name = keys[i], .dtype = slice.dtype, .shape = slice.box.shape});
    metadata[keys[i]] =
        fmt::format(R"({{"name":"{}","global_shape":[{}],"global_offset":[{}]}})", slice.name,
                    fmt::join(slice.global_shape, ","), fmt::join(slice.box.offset, ","));
  }
  FileLayout layout;
  TROUPE_ASSIGN_OR_RETURN(layout.head, LayOutSafetensors(entries, metadata));
  layout.shard.set_name(ShardFileName(rank));
  layout.shard.set_rank(rank);
  for (const SafetensorsEntry& entry : entries) {
    const size_t i = index_of_key.at(entry.name);
    const GlobalSlice& slice = slices[i];
    layout.order.push_back(i);
    v1::TensorSlice& tensor = *layout.shard.add_tensors();
    tensor.set_name(slice.name);
    tensor.set_dtype(slice.dtype);
    tensor.mutable_global_shape()->Assign(slice.global_shape.begin(), slice.global_shape.end());
    tensor.mutable_global_offset()->Assign(slice.box.offset.begin(), slice.box.offset.end());
    tensor.mutable_shape()->Assign(slice.box.shape.begin(), slice.box.shape.end());
    tensor.set_data_begin(entry.begin);
    tensor.set_data_end(entry.end);
  }
  return layout;
}

}  // namespace

StatusOr<v1::ShardFile> WriteShard(FileSystem& files, const std::string& directory, int rank,
                                   const std::vector<ShardTensor>& tensors) {
  TROUPE_CHECK(rank >= 0);
  TROUPE_ASSIGN_OR_RETURN(FileLayout layout, LayOut(rank, tensors));
  const std::string path = JoinPath(directory, layout.shard.name());
  const auto there = files.Stat(path, SymbolicLinks::kRefuse);
  if (there.ok()) return AlreadyExists("{}: this attempt's shard is written already", path);
  if (there.status().code() != StatusCode::kNotFound) return there.status();

  const std::string temporary = path + ".tmp";
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file,
                          files.Create(temporary, CreateMode::kExclusive));
  TROUPE_RETURN_IF_ERROR(HitFailpoint("checkpoint.shard.created"));
  HashingWriter writer(*file);
  TROUPE_RETURN_IF_ERROR(writer.Append(AsBytes(layout.head)));
  for (const size_t i : layout.order) TROUPE_RETURN_IF_ERROR(writer.Append(tensors[i].data));
  TROUPE_RETURN_IF_ERROR(writer.Finish(layout.shard));
  TROUPE_RETURN_IF_ERROR(HitFailpoint("checkpoint.shard.written"));
  TROUPE_RETURN_IF_ERROR(file->Sync());
  TROUPE_RETURN_IF_ERROR(file->Close());
  TROUPE_RETURN_IF_ERROR(HitFailpoint("checkpoint.shard.synced"));
  TROUPE_RETURN_IF_ERROR(files.Rename(temporary, path));
  TROUPE_RETURN_IF_ERROR(HitFailpoint("checkpoint.shard.renamed"));
  TROUPE_RETURN_IF_ERROR(files.SyncDirectory(directory));
  TROUPE_RETURN_IF_ERROR(HitFailpoint("checkpoint.shard.durable"));
  return std::move(layout.shard);
}

}  // namespace troupe
