// Writer of Megatron-LM's indexed datasets, the counterpart of data/indexed_dataset.h.
//
// Tokens go to PREFIX.bin.tmp. Finish writes PREFIX.idx.tmp and PREFIX.troupe.json.tmp, syncs all,
// removes an older index, and renames the index last. After a crash PREFIX.idx is therefore either
// absent or complete and consistent with the files next to it. Not thread-safe.
#ifndef TROUPE_DATA_INDEXED_DATASET_WRITER_H_
#define TROUPE_DATA_INDEXED_DATASET_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_system.h"
#include "base/status.h"
#include "data/tokens.h"

namespace troupe {

class IndexedDatasetWriter {
 public:
  struct Options {
    std::string prefix;
    TokenType type = TokenType::kUint16;
    // A longer document becomes several sequences, because the format's lengths are int32.
    int64_t sequence_tokens_max = std::numeric_limits<int32_t>::max();
  };

  // Creates PREFIX.bin.tmp and replaces an older one. `files` must outlive the writer. REQUIRES:
  // `type` is an integer type, 0 < sequence_tokens_max < 2^31.
  static StatusOr<std::unique_ptr<IndexedDatasetWriter>> Create(FileSystem& files, Options options);

  // Removes the temporary files unless Finish has succeeded.
  ~IndexedDatasetWriter();

  // Appends to the open document. INVALID_ARGUMENT for a token that the type cannot hold.
  Status Append(std::span<const int32_t> tokens);

  // Ends the open document; an empty one is a document without sequences.
  Status EndDocument();

  // Completes the dataset. `description`: the text of its description file
  // (data/dataset_description.h); without one, it has no such file. Durable on return. REQUIRES:
  // the last document is ended; nothing is called afterwards.
  Status Finish(std::string_view description = "");

  int64_t documents() const { return static_cast<int64_t>(document_indices_.size()) - 1; }
  int64_t tokens() const { return tokens_; }

 private:
  IndexedDatasetWriter(FileSystem& files, Options options) : files_(files), options_(options) {}
  Status Flush();
  Status WriteIndex();
  // Writes `path`.tmp.
  Status WriteTemporary(const std::string& path, std::span<const std::byte> bytes);
  // Removes the file if there is one.
  Status RemoveOlder(const std::string& path);

  FileSystem& files_;
  const Options options_;
  std::unique_ptr<WritableFile> data_;
  std::vector<std::byte> buffer_;
  std::vector<int32_t> lengths_;
  std::vector<int64_t> document_indices_{0};
  int64_t open_sequence_tokens_ = 0;
  int64_t tokens_ = 0;
  bool finished_ = false;
};

}  // namespace troupe

#endif  // TROUPE_DATA_INDEXED_DATASET_WRITER_H_
