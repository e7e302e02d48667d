// A cache of the ids of earlier pieces, because a text repeats a small number of pieces. Bounded: a
// full cache is cleared. Not thread-safe.
#ifndef TROUPE_DATA_PIECE_CACHE_H_
#define TROUPE_DATA_PIECE_CACHE_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

class PieceCache {
 public:
  // Longer pieces seldom repeat.
  static constexpr size_t kPieceBytesMax = 48;

  PieceCache();

  // Returns the ids of `piece`, at least one, or an empty span if they are not cached. Valid until
  // Add. REQUIRES: 0 < piece.size() <= kPieceBytesMax.
  std::span<const int32_t> Find(std::string_view piece);

  // REQUIRES: Find(piece) was the last call and returned an empty span.
  void Add(std::string_view piece, std::span<const int32_t> ids);

 private:
  struct Slot {
    uint64_t hash = 0;
    uint32_t text_at = 0;
    uint32_t ids_at = 0;
    uint16_t text_bytes = 0;  // 0: free
    uint16_t ids = 0;
  };

  std::vector<Slot> slots_;
  size_t used_ = 0;
  std::string texts_;
  std::vector<int32_t> ids_;
  // The hash and the slot index of the last Find.
  uint64_t hash_ = 0;
  size_t at_ = 0;
};

}  // namespace troupe

#endif  // TROUPE_DATA_PIECE_CACHE_H_
