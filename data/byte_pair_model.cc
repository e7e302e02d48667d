#include "data/byte_pair_model.h"

#include <algorithm>
#include <bit>
#include <queue>

namespace troupe {
namespace {

// Up to this size, a scan over all pairs for each merge is faster than a heap.
constexpr size_t kShortBytes = 64;

uint64_t PairKey(int32_t left, int32_t right) {
  return (uint64_t{static_cast<uint32_t>(left)} << 32) | static_cast<uint32_t>(right);
}

}  // namespace

BytePairModel::BytePairModel(const std::array<int32_t, 256>& byte_ids,
                             std::span<const Merge> merges,
                             std::unordered_map<std::string, int32_t> words)
    : byte_ids_(byte_ids), words_(std::move(words)) {
  const int bits = std::max(4, static_cast<int>(std::bit_width(2 * merges.size())));
  hash_shift_ = 64 - bits;
  slots_.resize(size_t{1} << bits);
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const Merge& merge = merges[rank];
    const uint64_t pair = PairKey(merge.left, merge.right);
    size_t at = (pair * 0x9E3779B97F4A7C15) >> hash_shift_;
    while (slots_[at].join.rank != kNoRank && slots_[at].pair != pair) {
      at = (at + 1) & (slots_.size() - 1);
    }
    slots_[at] = {pair, {static_cast<uint32_t>(rank), merge.joined}};
  }
}

BytePairModel::Join BytePairModel::Find(int32_t left, int32_t right) const {
  const uint64_t pair = PairKey(left, right);
  size_t at = (pair * 0x9E3779B97F4A7C15) >> hash_shift_;
  while (slots_[at].join.rank != kNoRank && slots_[at].pair != pair) {
    at = (at + 1) & (slots_.size() - 1);
  }
  return slots_[at].join;
}

void BytePairModel::Encode(std::string_view piece, std::vector<int32_t>& ids) const {
  if (!words_.empty()) {
    const auto word = words_.find(std::string(piece));
    if (word != words_.end()) {
      ids.push_back(word->second);
      return;
    }
  }
  piece.size() <= kShortBytes ? EncodeShort(piece, ids) : EncodeLong(piece, ids);
}

void BytePairModel::EncodeShort(std::string_view piece, std::vector<int32_t>& ids) const {
  std::array<int32_t, kShortBytes> symbols;
  std::array<Join, kShortBytes> joins;  // joins[i] is the pair of symbols i and i + 1
  size_t count = piece.size();
  for (size_t i = 0; i < count; ++i) symbols[i] = byte_ids_[static_cast<unsigned char>(piece[i])];
  for (size_t i = 0; i + 1 < count; ++i) joins[i] = Find(symbols[i], symbols[i + 1]);
  while (count > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < count; ++i) {
      if (joins[i].rank < joins[best].rank) best = i;
    }
    if (joins[best].rank == kNoRank) break;
    symbols[best] = joins[best].id;
    std::copy(symbols.begin() + best + 2, symbols.begin() + count, symbols.begin() + best + 1);
    std::copy(joins.begin() + best + 1, joins.begin() + (count - 1), joins.begin() + best);
    --count;
    if (best > 0) joins[best - 1] = Find(symbols[best - 1], symbols[best]);
    if (best + 1 < count) joins[best] = Find(symbols[best], symbols[best + 1]);
  }
  ids.insert(ids.end(), symbols.begin(), symbols.begin() + count);
}

void BytePairModel::EncodeLong(std::string_view piece, std::vector<int32_t>& ids) const {
  struct Symbol {
    int32_t id;  // below 0: merged into the previous symbol
    size_t previous;
    size_t next;  // `count`: none
  };
  // A symbol only ever grows, so an entry is stale exactly if either id has changed.
  struct Candidate {
    Join join;
    size_t at;
    int32_t left;
    int32_t right;
    bool operator<(const Candidate& other) const {  // the heap's top is its greatest element
      return join.rank != other.join.rank ? join.rank > other.join.rank : at > other.at;
    }
  };
  const size_t count = piece.size();
  std::vector<Symbol> symbols(count);
  for (size_t i = 0; i < count; ++i) {
    symbols[i] = {byte_ids_[static_cast<unsigned char>(piece[i])], i - 1, i + 1};
  }
  std::vector<Candidate> first;
  first.reserve(count);
  const auto candidate = [&](size_t at) -> Candidate {
    const int32_t left = symbols[at].id, right = symbols[symbols[at].next].id;
    return {Find(left, right), at, left, right};
  };
  for (size_t i = 0; i + 1 < count; ++i) {
    const Candidate made = candidate(i);
    if (made.join.rank != kNoRank) first.push_back(made);
  }
  std::priority_queue<Candidate> heap(std::less<Candidate>(), std::move(first));
  const auto add = [&](size_t at) {
    const Candidate made = candidate(at);
    if (made.join.rank != kNoRank) heap.push(made);
  };
  while (!heap.empty()) {
    const Candidate top = heap.top();
    heap.pop();
    Symbol& left = symbols[top.at];
    if (left.id != top.left || left.next == count || symbols[left.next].id != top.right) continue;
    symbols[left.next].id = -1;
    left.id = top.join.id;
    left.next = symbols[left.next].next;
    if (left.next < count) {
      symbols[left.next].previous = top.at;
      add(top.at);
    }
    if (top.at > 0) add(left.previous);
  }
  for (size_t at = 0; at < count; at = symbols[at].next) ids.push_back(symbols[at].id);
}

}  // namespace troupe
