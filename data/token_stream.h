// Tokens of some sequences of a dataset, one after another, as one stream of positions.
// Immutable, thread-safe; copies share the dataset's mapping.
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
  // All of them.
  explicit TokenStream(TokenArray tokens);

  int64_t tokens() const { return tokens_; }

  // Fills `out` with the tokens from `position` of the stream on. Errors as of
  // TokenArray::Read. REQUIRES: the range lies within [0, tokens()).
  Status Read(int64_t position, int64_t vocab_size, std::span<int32_t> out) const;

  // Fills `out`, which stands for the tokens from `position` on, with the index in `out` at which
  // each token's document begins; 0 for one that began before. A document ends at the `ends`,
  // ascending, of the array, and where the stream leaves out what follows in it. REQUIRES: the range
  // lies within [0, tokens()).
  void DocumentStarts(int64_t position, std::span<const int64_t> ends, std::span<int32_t> out) const;

 private:
  friend std::pair<TokenStream, TokenStream> HoldOut(const TokenArray& tokens,
                                                     std::span<const int64_t> ends, int64_t count);

  struct Run {
    int64_t begin;     // in the stream
    int64_t position;  // in the array
  };

  // Calls part(first, position, count) for each contiguous part of the tokens [position, position +
  // count) of the stream: tokens from `first` of these on lie at `position` of the array.
  template <typename Part>
  Status ForEachPart(int64_t position, int64_t count, const Part& part) const;

  // With no run yet.
  struct Empty {};
  TokenStream(TokenArray tokens, Empty) : array_(std::move(tokens)) {}
  void Append(int64_t position, int64_t tokens);

  TokenArray array_;
  std::vector<Run> runs_;  // sorted by both; neighbours in the array are one run
  int64_t tokens_ = 0;
};

// Splits the sequences that end at `ends` into those for training and `count` held out. These are
// spread evenly over the file (the middle one of each of `count` equal parts), because files come
// sorted, by name or by source, and their end is unlike the rest. REQUIRES: 0 <= count <=
// ends.size(); `ends` ascends to tokens.tokens().
std::pair<TokenStream, TokenStream> HoldOut(const TokenArray& tokens,
                                            std::span<const int64_t> ends, int64_t count);

}  // namespace troupe

#endif  // TROUPE_DATA_TOKEN_STREAM_H_
