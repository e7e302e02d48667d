#include "data/indexed_dataset.h"

#include <bit>
#include <cstring>

#include "base/check.h"
#include "base/text_file.h"

namespace troupe {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

// The arrays begin at offset 34, so their elements are not aligned.
template <typename T>
T Load(std::span<const std::byte> bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

}  // namespace

StatusOr<IndexedDataset> IndexedDataset::Open(FileSystem& files, const std::string& prefix) {
  IndexedDataset dataset;
  dataset.prefix_ = prefix;
  // Users link datasets into place, so symbolic links are followed here.
  TROUPE_ASSIGN_OR_RETURN(dataset.index_, files.Map(prefix + ".idx", SymbolicLinks::kFollow));
  TROUPE_ASSIGN_OR_RETURN(std::shared_ptr<const MappedFile> data,
                          files.Map(prefix + ".bin", SymbolicLinks::kFollow));
  if (IsGitLfsPointer(dataset.index_->bytes()))
    return Annotate(GitLfsPointerFault(), prefix + ".idx");
  TROUPE_RETURN_IF_ERROR(dataset.ReadHeader());
  const Status valid = dataset.ValidateArrays(data);
  // Tokens of one byte may look like a pointer, so only a file that does not fit its index is one.
  if (!valid.ok() && IsGitLfsPointer(data->bytes()))
    return Annotate(GitLfsPointerFault(), prefix + ".bin");
  TROUPE_RETURN_IF_ERROR(valid);
  return dataset;
}

std::span<const std::byte> IndexedDataset::IndexField(int64_t offset, int64_t bytes) const {
  return index_->bytes().subspan(static_cast<size_t>(offset), static_cast<size_t>(bytes));
}

Status IndexedDataset::ReadHeader() {
  const std::string path = prefix_ + ".idx";
  const int64_t size = static_cast<int64_t>(index_->bytes().size());
  if (size < kIndexHeaderBytes) {
    return InvalidArgument("{}: size {} is below the {} bytes of the header", path, size,
                           kIndexHeaderBytes);
  }
  if (std::memcmp(index_->bytes().data(), kIndexMagic, sizeof kIndexMagic) != 0) {
    return InvalidArgument("{}: magic is not \"MMIDIDX\"; this is not a Megatron index", path);
  }
  const uint64_t version = Load<uint64_t>(IndexField(9, 8));
  if (version != kIndexVersion) {
    return InvalidArgument("{}: version {} is not {}", path, version, kIndexVersion);
  }
  const uint8_t code = Load<uint8_t>(IndexField(17, 1));
  type_ = static_cast<TokenType>(code);
  if (!IsIndexCode(code)) {
    return InvalidArgument("{}: dtype code {} is not in [1, 8]", path, code);
  }
  const uint64_t sequences = Load<uint64_t>(IndexField(18, 8));
  const uint64_t indices = Load<uint64_t>(IndexField(26, 8));
  // Both counts are bounded by the size before they are multiplied, so that nothing overflows.
  const uint64_t room = static_cast<uint64_t>(size - kIndexHeaderBytes);
  if (sequences > room / 12) {
    return InvalidArgument(
        "{}: sequence_count {} needs 12 bytes each, but {} bytes follow the header", path,
        sequences, room);
  }
  if (indices > room / 8) {
    return InvalidArgument(
        "{}: document_count {} needs 8 bytes each, but {} bytes follow the header", path, indices,
        room);
  }
  if (indices == 0) {
    return InvalidArgument("{}: document_count is 0, but document_indices has at least the entry 0",
                           path);
  }
  const uint64_t arrays = sequences * 12 + indices * 8;
  if (room != arrays && room != arrays + sequences) {
    return InvalidArgument(
        "{}: size {} is neither {} (sequence_count {}, document_count {}) nor {} (with modes)",
        path, size, kIndexHeaderBytes + arrays, sequences, indices,
        kIndexHeaderBytes + arrays + sequences);
  }
  sequences_ = static_cast<int64_t>(sequences);
  documents_ = static_cast<int64_t>(indices) - 1;
  pointers_at_ = kIndexHeaderBytes + 4 * sequences_;
  document_indices_at_ = pointers_at_ + 8 * sequences_;
  return OkStatus();
}

Status IndexedDataset::ValidateArrays(std::shared_ptr<const MappedFile> data) {
  const std::string path = prefix_ + ".idx";
  const int64_t token_bytes = TokenBytes(type_);
  const int64_t data_bytes = static_cast<int64_t>(data->bytes().size());
  int64_t end = 0;  // at most data_bytes, so adding one length (below 2^34 bytes) cannot overflow
  for (int64_t i = 0; i < sequences_; ++i) {
    const int32_t length = Load<int32_t>(IndexField(kIndexHeaderBytes + 4 * i, 4));
    if (length < 0) return InvalidArgument("{}: lengths[{}] is {}, below 0", path, i, length);
    const int64_t pointer = Load<int64_t>(IndexField(pointers_at_ + 8 * i, 8));
    if (pointer != end) {
      return InvalidArgument(
          "{}: byte_pointers[{}] is {}, but the sequences before it end at byte {}", path, i,
          pointer, end);
    }
    const int64_t bytes = int64_t{length} * token_bytes;
    if (bytes > data_bytes - end) {
      return InvalidArgument(
          "{}.bin: size {} is too short: {} states that sequence {} ends at byte {}", prefix_,
          data_bytes, path, i, end + bytes);
    }
    end += bytes;
  }
  if (end != data_bytes) {
    return InvalidArgument("{}.bin: size {} is not {}, the bytes of all sequences of {}", prefix_,
                           data_bytes, end, path);
  }
  int64_t previous = 0;
  for (int64_t i = 0; i <= documents_; ++i) {
    const int64_t index = Load<int64_t>(IndexField(document_indices_at_ + 8 * i, 8));
    if (i == 0 && index != 0) {
      return InvalidArgument("{}: document_indices[0] is {}, not 0", path, index);
    }
    if (index < previous || index > sequences_) {
      return InvalidArgument("{}: document_indices[{}] is {}, outside [{}, sequence_count {}]",
                             path, i, index, previous, sequences_);
    }
    previous = index;
  }
  if (previous != sequences_) {
    return InvalidArgument("{}: the last of document_indices is {}, not sequence_count {}", path,
                           previous, sequences_);
  }
  array_.emplace(prefix_ + ".bin", std::move(data), 0, type_, end / token_bytes);
  return OkStatus();
}

int64_t IndexedDataset::SequenceBegin(int64_t sequence) const {
  TROUPE_CHECK(sequence >= 0 && sequence <= sequences_);
  if (sequence == sequences_) return tokens();
  return Load<int64_t>(IndexField(pointers_at_ + 8 * sequence, 8)) / TokenBytes(type_);
}

int64_t IndexedDataset::DocumentBegin(int64_t document) const {
  TROUPE_CHECK(document >= 0 && document <= documents_);
  return Load<int64_t>(IndexField(document_indices_at_ + 8 * document, 8));
}

}  // namespace troupe
