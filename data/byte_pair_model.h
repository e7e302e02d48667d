// Byte-pair encoding of one piece of text. The piece starts as its bytes; the adjacent pair with
// the lowest rank is merged, the leftmost one if it occurs twice, until no adjacent pair is a known
// merge.
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

  // `merges` are in the order of their ranks; for a pair that occurs twice the later entry counts.
  // `words` are pieces that are one token without any merge (empty unless `ignore_merges`).
  BytePairModel(const std::array<int32_t, 256>& byte_ids, std::span<const Merge> merges,
                std::unordered_map<std::string, int32_t> words);

  // Appends the ids of `piece` to `ids`. O(n log n) in its bytes.
  void Encode(std::string_view piece, std::vector<int32_t>& ids) const;

 private:
  static constexpr uint32_t kNoRank = 0xFFFFFFFF;

  // The result of merging a pair.
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
  // A hash table with open addressing, at most half full: a pair is stored in the first free slot
  // from its hash on.
  std::vector<Slot> slots_;
  int hash_shift_;
  std::unordered_map<std::string, int32_t> words_;
};

}  // namespace troupe

#endif  // TROUPE_DATA_BYTE_PAIR_MODEL_H_
