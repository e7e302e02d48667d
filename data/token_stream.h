// Tokens of some sequences of an indexed dataset, one after another, as one stream of positions.
// Immutable, thread-safe; copies share the dataset's mapping.
#ifndef TROUPE_DATA_TOKEN_STREAM_H_
#define TROUPE_DATA_TOKEN_STREAM_H_

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/status.h"
#include "data/indexed_dataset.h"

namespace troupe {

class TokenStream {
 public:
  // All sequences.
  explicit TokenStream(IndexedDataset dataset);

  int64_t tokens() const { return tokens_; }

  // Fills `out` with the tokens from `position` of the stream on. Errors as of
  // IndexedDataset::Read. REQUIRES: the range lies within [0, tokens()).
  Status Read(int64_t position, int64_t vocab_size, std::span<int32_t> out) const;

 private:
  friend std::pair<TokenStream, TokenStream> HoldOut(const IndexedDataset& dataset, int64_t count);

  struct Run {
    int64_t begin;     // in the stream
    int64_t position;  // in the dataset
  };

  // With no run yet.
  struct Empty {};
  TokenStream(IndexedDataset dataset, Empty) : dataset_(std::move(dataset)) {}
  void Append(int64_t position, int64_t tokens);

  IndexedDataset dataset_;
  std::vector<Run> runs_;  // sorted by both; neighbours in the dataset are one run
  int64_t tokens_ = 0;
};

// Splits the sequences into those for training and `count` held out. These are spread evenly over
// the file (the middle one of each of `count` equal parts), because files come sorted, by name or
// by source, and their end is unlike the rest. REQUIRES: 0 <= count <= dataset.sequences().
std::pair<TokenStream, TokenStream> HoldOut(const IndexedDataset& dataset, int64_t count);

}  // namespace troupe

#endif  // TROUPE_DATA_TOKEN_STREAM_H_
