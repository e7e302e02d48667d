// What a path of `data` in a job names: PREFIX of an indexed dataset (PREFIX.idx, PREFIX.bin), or a
// token file of llm.c, whose path ends in `.bin`. Immutable, thread-safe; copies share the mapping.
#ifndef TROUPE_DATA_TOKEN_DATASET_H_
#define TROUPE_DATA_TOKEN_DATASET_H_

#include <cstdint>
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
  // Errors of IndexedDataset::Open and LlmcTokenFile::Open.
  static StatusOr<TokenDataset> Open(FileSystem& files, const std::string& path);

  const TokenArray& tokens() const;

  // Where each sequence ends in tokens(), ascending: the last one is their number. Sequences of an
  // llm.c file are its documents, for which the whole file is read.
  std::vector<int64_t> SequenceEnds() const;
  // The same of documents, which may consist of several sequences.
  std::vector<int64_t> DocumentEnds() const;

 private:
  using Source = std::variant<IndexedDataset, LlmcTokenFile>;
  explicit TokenDataset(Source source) : source_(std::move(source)) {}

  Source source_;
};

}  // namespace troupe

#endif  // TROUPE_DATA_TOKEN_DATASET_H_
