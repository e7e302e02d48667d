// Reader of Megatron-LM's indexed datasets (core/datasets/indexed_dataset.py): PREFIX.idx states
// the position of each sequence in PREFIX.bin, the raw tokens. Both are memory-mapped.
//
// No content of the files is trusted before it is checked. Open validates every header field, and
// that lengths, pointers and document indices are as Megatron's own writer produces them:
// contiguous sequences from byte 0 to the end of the .bin file, without holes. The .bin file *is*
// therefore the concatenation of all sequences, and a token is found by its position alone.
// Immutable, thread-safe.
#ifndef TROUPE_DATA_INDEXED_DATASET_H_
#define TROUPE_DATA_INDEXED_DATASET_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/file_system.h"
#include "base/status.h"
#include "data/token_array.h"

namespace troupe {

class IndexedDataset {
 public:
  // Opens PREFIX.idx and PREFIX.bin. NOT_FOUND if one is missing; INVALID_ARGUMENT names file,
  // field and value if one is truncated or inconsistent.
  static StatusOr<IndexedDataset> Open(FileSystem& files, const std::string& prefix);

  const std::string& prefix() const { return prefix_; }
  TokenType token_type() const { return type_; }
  // Returns the concatenation of all sequences.
  const TokenArray& token_array() const { return *array_; }
  // Returns the bytes of PREFIX.idx.
  std::span<const std::byte> index_bytes() const { return index_->bytes(); }
  int64_t sequences() const { return sequences_; }
  int64_t documents() const { return documents_; }
  // Returns the number of tokens in all sequences.
  int64_t tokens() const { return array_->tokens(); }

  // Returns the position of the first token of `sequence` in the concatenation, or tokens() for
  // `sequence` = sequences(). REQUIRES: 0 <= sequence <= sequences().
  int64_t SequenceBegin(int64_t sequence) const;

  // Returns the first sequence of `document`, or sequences() for `document` = documents().
  // REQUIRES: 0 <= document <= documents().
  int64_t DocumentBegin(int64_t document) const;

  // Same as token_array().Read.
  Status Read(int64_t position, int64_t vocab_size, std::span<int32_t> out) const {
    return array_->Read(position, vocab_size, out);
  }

 private:
  IndexedDataset() = default;
  Status ReadHeader();
  Status ValidateArrays(std::shared_ptr<const MappedFile> data);
  std::span<const std::byte> IndexField(int64_t offset, int64_t bytes) const;

  std::string prefix_;
  std::shared_ptr<const MappedFile> index_;
  TokenType type_ = TokenType::kUint16;
  int64_t sequences_ = 0;
  int64_t documents_ = 0;
  std::optional<TokenArray> array_;  // present once opened
  // The byte offsets of the arrays in the index.
  int64_t pointers_at_ = 0;
  int64_t document_indices_at_ = 0;
};

}  // namespace troupe

#endif  // TROUPE_DATA_INDEXED_DATASET_H_
