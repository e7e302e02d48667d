// Byte-pair encoding of one piece of text: its bytes are joined pair by pair, always the pair of the
// lowest rank, the leftmost where it occurs twice, until no neighbours are a known pair.
//
// Immutable, thread-safe.
#ifndef TROUPE_DATA_BYTE_PAIR_MODEL_H_
#define TROUPE_DATA_BYTE_PAIR_MODEL_H_

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace troupe {

class BytePairModel {
 public:
  struct Merge {
    int32_t left;
    int32_t right;
    int32_t joined;
  };

  // `merges` in the order of their ranks; a pair that occurs twice has the later one. `words` are
  // pieces that are one token without any merge (empty unless `ignore_merges`).
  BytePairModel(const std::array<int32_t, 256>& byte_ids, std::span<const Merge> merges,
                std::unordered_map<std::string, int32_t> words);

  // Puts the ids of `piece` behind what `ids` holds. O(n log n) in its bytes.
  void Encode(std::string_view piece, std::vector<int32_t>& ids) const;

 private:
  static constexpr uint32_t kNoRank = 0xFFFFFFFF;

  // What a pair becomes.
  struct Join {
    uint32_t rank = kNoRank;
    int32_t id = 0;
  };
  struct Slot {
    uint64_t pair = 0;
    Join join;
  };

  Join Find(int32_t left, int32_t right) const;
  void EncodeShort(std::string_view piece, std::vector<int32_t>& ids) const;
  void EncodeLong(std::string_view piece, std::vector<int32_t>& ids) const;

  std::array<int32_t, 256> byte_ids_;
  // Open addressing, at most half full: a pair stands in the first free slot from its hash on.
  std::vector<Slot> slots_;
  int hash_shift_;
  std::unordered_map<std::string, int32_t> words_;
};

}  // namespace troupe

#endif  // TROUPE_DATA_BYTE_PAIR_MODEL_H_
