// The tokens of some sequences of a dataset, concatenated into one stream of positions. Immutable,
// thread-safe; copies share the dataset's mapping.
#ifndef TROUPE_DATA_TOKEN_STREAM_H_
#define TROUPE_DATA_TOKEN_STREAM_H_

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/status.h"
#include "data/token_array.h"

namespace troupe {

class TokenStream {
 public:
  // Creates a stream of all tokens.
  explicit TokenStream(TokenArray tokens);

  int64_t tokens() const { return tokens_; }

  // Fills `out` with the tokens from `position` of the stream. Errors: as TokenArray::Read.
  // REQUIRES: the range is within [0, tokens()).
  Status Read(int64_t position, int64_t vocab_size, std::span<int32_t> out) const;

  // For each token from `position` of the stream, writes to `out` the index in `out` at which the
  // token's document begins, or 0 if the document began earlier. A document ends at the ascending
  // `ends` of the array, and where the stream skips the tokens that follow it. REQUIRES: the range
  // is within [0, tokens()).
  void DocumentStarts(int64_t position, std::span<const int64_t> ends,
                      std::span<int32_t> out) const;

 private:
  friend std::pair<TokenStream, TokenStream> HoldOut(const TokenArray& tokens,
                                                     std::span<const int64_t> ends, int64_t count);

  struct Run {
    int64_t begin;     // position in the stream
    int64_t position;  // position in the array
  };

  // Calls part(first, position, count) for each contiguous part of the tokens [position, position +
  // count) of the stream. Each part is `count` tokens from index `first` of that range, stored from
  // `position` of the array.
  template <typename Part>
  Status ForEachPart(int64_t position, int64_t count, const Part& part) const;

  // Creates a stream without runs.
  struct Empty {};
  TokenStream(TokenArray tokens, Empty) : array_(std::move(tokens)) {}
  void Append(int64_t position, int64_t tokens);

  TokenArray array_;
  std::vector<Run> runs_;  // sorted by both; adjacent runs in the array are merged
  int64_t tokens_ = 0;
};

// Splits the sequences that end at `ends` into training and `count` held-out ones. The held-out
// sequences are spread evenly over the file (the middle one of each of `count` equal parts),
// because files are often sorted by name or by source, and their end differs from the rest. Returns
// the training and the held-out stream. REQUIRES: 0 <= count <= ends.size(); `ends` ascends to
// tokens.tokens().
std::pair<TokenStream, TokenStream> HoldOut(const TokenArray& tokens, std::span<const int64_t> ends,
                                            int64_t count);

}  // namespace troupe

#endif  // TROUPE_DATA_TOKEN_STREAM_H_
