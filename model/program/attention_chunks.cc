#include "model/program/attention_chunks.h"

#include <algorithm>

namespace troupe::model {
namespace {

constexpr int64_t kLeastChunk = 128;
constexpr int64_t kMostChunks = 16;
// From this number of chunks on, a loop over them keeps the program short: a TPU's compiler takes
// seconds for each chunk of each layer. Fewer chunks are faster one by one.
constexpr size_t kLeastLooped = 8;

}  // namespace

AttentionChunks ChunksOf(const AttentionAttributes& attention, const ContextRows& queries,
                         const ContextRows& keys) {
  AttentionChunks of;
  of.size = std::max(kLeastChunk, attention.tokens / kMostChunks);
  const auto add = [&](int64_t begin, int64_t end) {
    for (int64_t first = begin; first < end; first += of.size) {
      const int64_t last = std::min(end, first + of.size);
      of.chunks.push_back({first, last, keys.CountBefore(queries.Position(last - 1) + 1)});
    }
  };
  add(0, queries.chunk);
  add(queries.chunk, queries.rows);
  // A loop needs chunks of equal size.
  of.loops = of.chunks.size() >= kLeastLooped &&
             std::ranges::all_of(of.chunks, [&](const QueryChunk& chunk) {
               return chunk.end - chunk.begin == of.size;
             });
  of.by_blocks = of.loops || (attention.mask.kind == Mask::Kind::kDocument && keys.rows > of.size);
  return of;
}

}  // namespace troupe::model
