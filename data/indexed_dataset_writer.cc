#include "data/indexed_dataset_writer.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "data/dataset_description.h"

namespace troupe {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 20;

struct Bounds {
  int64_t least;
  int64_t most;
};

Bounds BoundsOf(TokenType type) {
  switch (type) {
    case TokenType::kUint8:
      return {0, 255};
    case TokenType::kInt8:
      return {-128, 127};
    case TokenType::kInt16:
      return {-32768, 32767};
    case TokenType::kUint16:
      return {0, 65535};
    default:
      return {std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()};
  }
}

template <typename T>
void Put(std::vector<std::byte>& out, T value) {
  const size_t at = out.size();
  out.resize(at + sizeof value);
  std::memcpy(out.data() + at, &value, sizeof value);
}

}  // namespace

StatusOr<std::unique_ptr<IndexedDatasetWriter>> IndexedDatasetWriter::Create(FileSystem& files,
                                                                             Options options) {
  TROUPE_CHECK(IsIndexCode(static_cast<uint8_t>(options.type)) &&
               options.type != TokenType::kFloat32 && options.type != TokenType::kFloat64);
  TROUPE_CHECK(options.sequence_tokens_max > 0 &&
               options.sequence_tokens_max <= std::numeric_limits<int32_t>::max());
  std::unique_ptr<IndexedDatasetWriter> writer(new IndexedDatasetWriter(files, std::move(options)));
  TROUPE_ASSIGN_OR_RETURN(
      writer->data_, files.Create(writer->options_.prefix + ".bin.tmp", CreateMode::kTruncate));
  return writer;
}

IndexedDatasetWriter::~IndexedDatasetWriter() {
  if (finished_) return;
  data_.reset();
  // The next writer of this prefix overwrites a file that cannot be removed.
  for (const std::string& path :
       {options_.prefix + ".bin", options_.prefix + ".idx", DescriptionPath(options_.prefix)}) {
    files_.Remove(path + ".tmp").IgnoreError();
  }
}

Status IndexedDatasetWriter::Append(std::span<const int32_t> tokens) {
  const Bounds bounds = BoundsOf(options_.type);
  const int64_t token_bytes = TokenBytes(options_.type);
  for (const int32_t token : tokens) {
    if (token < bounds.least || token > bounds.most) {
      return InvalidArgument("{}.bin: token {} at position {} is not in [{}, {}] of its type",
                             options_.prefix, token, tokens_, bounds.least, bounds.most);
    }
    const int64_t wide = token;  // little-endian: its low bytes are the token in any narrower type
    const size_t at = buffer_.size();
    buffer_.resize(at + static_cast<size_t>(token_bytes));
    std::memcpy(buffer_.data() + at, &wide, static_cast<size_t>(token_bytes));
    ++tokens_;
    if (++open_sequence_tokens_ == options_.sequence_tokens_max) {
      lengths_.push_back(static_cast<int32_t>(open_sequence_tokens_));
      open_sequence_tokens_ = 0;
    }
    if (buffer_.size() >= kBufferBytes) TROUPE_RETURN_IF_ERROR(Flush());
  }
  return OkStatus();
}

Status IndexedDatasetWriter::Flush() {
  TROUPE_RETURN_IF_ERROR(data_->Append(buffer_));
  buffer_.clear();
  return OkStatus();
}

Status IndexedDatasetWriter::EndDocument() {
  if (open_sequence_tokens_ > 0) {
    lengths_.push_back(static_cast<int32_t>(open_sequence_tokens_));
    open_sequence_tokens_ = 0;
  }
  document_indices_.push_back(static_cast<int64_t>(lengths_.size()));
  return OkStatus();
}

Status IndexedDatasetWriter::WriteIndex() {
  std::vector<std::byte> index;
  index.reserve(static_cast<size_t>(kIndexHeaderBytes) + lengths_.size() * 12 +
                document_indices_.size() * 8);
  for (const char c : kIndexMagic) Put(index, c);
  Put(index, kIndexVersion);
  Put(index, static_cast<uint8_t>(options_.type));
  Put(index, static_cast<uint64_t>(lengths_.size()));
  Put(index, static_cast<uint64_t>(document_indices_.size()));
  for (const int32_t length : lengths_) Put(index, length);
  int64_t pointer = 0;
  for (const int32_t length : lengths_) {
    Put(index, pointer);
    pointer += length * TokenBytes(options_.type);
  }
  for (const int64_t document : document_indices_) Put(index, document);

  return WriteTemporary(options_.prefix + ".idx", index);
}

Status IndexedDatasetWriter::WriteTemporary(const std::string& path,
                                            std::span<const std::byte> bytes) {
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file,
                          files_.Create(path + ".tmp", CreateMode::kTruncate));
  TROUPE_RETURN_IF_ERROR(file->Append(bytes));
  TROUPE_RETURN_IF_ERROR(file->Sync());
  return file->Close();
}

Status IndexedDatasetWriter::RemoveOlder(const std::string& path) {
  const Status removed = files_.Remove(path);
  return removed.code() == StatusCode::kNotFound ? OkStatus() : removed;
}

Status IndexedDatasetWriter::Finish(std::string_view description) {
  TROUPE_CHECK(open_sequence_tokens_ == 0, "the last document has no end");
  const std::string& prefix = options_.prefix;
  const std::string described = DescriptionPath(prefix);
  TROUPE_RETURN_IF_ERROR(Flush());
  TROUPE_RETURN_IF_ERROR(data_->Sync());
  TROUPE_RETURN_IF_ERROR(data_->Close());
  TROUPE_RETURN_IF_ERROR(WriteIndex());
  if (!description.empty()) TROUPE_RETURN_IF_ERROR(WriteTemporary(described, AsBytes(description)));
  TROUPE_RETURN_IF_ERROR(RemoveOlder(prefix + ".idx"));
  TROUPE_RETURN_IF_ERROR(files_.SyncDirectory(ParentDirectory(prefix)));
  TROUPE_RETURN_IF_ERROR(files_.Rename(prefix + ".bin.tmp", prefix + ".bin"));
  TROUPE_RETURN_IF_ERROR(description.empty() ? RemoveOlder(described)
                                             : files_.Rename(described + ".tmp", described));
  TROUPE_RETURN_IF_ERROR(files_.Rename(prefix + ".idx.tmp", prefix + ".idx"));
  TROUPE_RETURN_IF_ERROR(files_.SyncDirectory(ParentDirectory(prefix)));
  finished_ = true;
  return OkStatus();
}

}  // namespace troupe
