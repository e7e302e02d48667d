// A dataset that a path of `data` in a job names: PREFIX of an indexed dataset (PREFIX.idx,
// PREFIX.bin), or a token file of llm.c, with a path that ends in `.bin`. Immutable, thread-safe;
// copies share the mapping.
#ifndef TROUPE_DATA_TOKEN_DATASET_H_
#define TROUPE_DATA_TOKEN_DATASET_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/file_system.h"
#include "base/status.h"
#include "data/indexed_dataset.h"
#include "data/llmc_token_file.h"
#include "data/token_array.h"

namespace troupe {

class TokenDataset {
 public:
  // Errors: as IndexedDataset::Open and LlmcTokenFile::Open.
  static StatusOr<TokenDataset> Open(FileSystem& files, const std::string& path);

  const TokenArray& tokens() const;
  // Absent for an llm.c file: only a read of the whole file would count them.
  std::optional<int64_t> documents() const;

  // A file that samples are read from.
  struct File {
    std::string name;  // the end of the path after the dataset's: ".idx"; may be empty
    bool is_index = false;
    std::span<const std::byte> bytes;  // valid as long as a copy of the dataset lives
  };
  std::vector<File> files() const;

  // Returns the end of each sequence in tokens(), ascending; the last is the number of tokens. The
  // sequences of an llm.c file are its documents, and finding them reads the whole file.
  std::vector<int64_t> SequenceEnds() const;
  // The same for documents, which may consist of several sequences.
  std::vector<int64_t> DocumentEnds() const;

 private:
  using Source = std::variant<IndexedDataset, LlmcTokenFile>;
  explicit TokenDataset(Source source) : source_(std::move(source)) {}

  Source source_;
};

}  // namespace troupe

#endif  // TROUPE_DATA_TOKEN_DATASET_H_
