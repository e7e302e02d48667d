#include "data/token_stream.h"

#include <algorithm>

#include "base/check.h"

namespace troupe {

TokenStream::TokenStream(TokenArray tokens) : array_(std::move(tokens)) {
  Append(0, array_.tokens());
}

void TokenStream::Append(int64_t position, int64_t tokens) {
  if (tokens == 0) return;
  const bool continues =
      !runs_.empty() && runs_.back().position + (tokens_ - runs_.back().begin) == position;
  if (!continues) runs_.push_back({tokens_, position});
  tokens_ += tokens;
}

template <typename Part>
Status TokenStream::ForEachPart(int64_t position, int64_t count, const Part& part) const {
  TROUPE_CHECK(position >= 0 && position + count <= tokens_, "[{}, {}) of {} tokens", position,
               position + count, tokens_);
  auto run = std::upper_bound(runs_.begin(), runs_.end(), position,
                              [](int64_t at, const Run& r) { return at < r.begin; });
  for (int64_t first = 0; first < count; ++run) {
    const int64_t end = run == runs_.end() ? tokens_ : run->begin;
    const Run& here = *std::prev(run);
    const int64_t tokens = std::min(count - first, end - position);
    TROUPE_RETURN_IF_ERROR(part(first, here.position + (position - here.begin), tokens));
    first += tokens;
    position = end;
  }
  return OkStatus();
}

Status TokenStream::Read(int64_t position, int64_t vocab_size, std::span<int32_t> out) const {
  return ForEachPart(position, std::ssize(out), [&](int64_t first, int64_t at, int64_t tokens) {
    return array_.Read(at, vocab_size,
                       out.subspan(static_cast<size_t>(first), static_cast<size_t>(tokens)));
  });
}

void TokenStream::DocumentStarts(int64_t position, std::span<const int64_t> ends,
                                 std::span<int32_t> out) const {
  const auto mark = [&](int64_t first, int64_t at, int64_t tokens) {
    auto end = std::upper_bound(ends.begin(), ends.end(), at);
    int64_t begin = first;
    for (int64_t i = first; i < first + tokens; ++i) {
      while (end != ends.end() && *end <= at + (i - first)) {
        begin = i;
        ++end;
      }
      out[static_cast<size_t>(i)] = static_cast<int32_t>(begin);
    }
    return OkStatus();
  };
  TROUPE_CHECK_OK(ForEachPart(position, std::ssize(out), mark));
}

std::pair<TokenStream, TokenStream> HoldOut(const TokenArray& tokens, std::span<const int64_t> ends,
                                            int64_t count) {
  const int64_t sequences = std::ssize(ends);
  TROUPE_CHECK(count >= 0 && count <= sequences, "{} of {} sequences", count, sequences);
  std::pair<TokenStream, TokenStream> split{TokenStream(tokens, TokenStream::Empty{}),
                                            TokenStream(tokens, TokenStream::Empty{})};
  // Bresenham's line algorithm: over all sequences the sum passes a multiple of `sequences` `count`
  // times.
  int64_t sum = sequences / 2;
  int64_t begin = 0;
  for (const int64_t end : ends) {
    sum += count;
    const bool held_out = sum >= sequences;
    if (held_out) sum -= sequences;
    (held_out ? split.second : split.first).Append(begin, end - begin);
    begin = end;
  }
  return split;
}

}  // namespace troupe
