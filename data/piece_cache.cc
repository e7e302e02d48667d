#include "data/piece_cache.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace troupe {
namespace {

constexpr size_t kSlots = size_t{1} << 17;  // 3 MiB of slots; at most half are used

uint64_t Hash(std::string_view text) {
  uint64_t hash = text.size();
  const auto mix = [&hash](uint64_t word) {
    const auto product =
        static_cast<unsigned __int128>(hash ^ word ^ 0x9E3779B97F4A7C15) * 0xD6E8FEB86659FD93;
    hash = static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
  };
  size_t at = 0;
  for (; at + 8 <= text.size(); at += 8) {
    uint64_t word;
    std::memcpy(&word, text.data() + at, sizeof word);
    mix(word);
  }
  uint64_t word = 0;
  std::memcpy(&word, text.data() + at, text.size() - at);
  mix(word);
  return hash;
}

}  // namespace

PieceCache::PieceCache() : slots_(kSlots) {}

std::span<const int32_t> PieceCache::Find(std::string_view piece) {
  hash_ = Hash(piece);
  at_ = hash_ & (kSlots - 1);
  for (; slots_[at_].text_bytes != 0; at_ = (at_ + 1) & (kSlots - 1)) {
    const Slot& slot = slots_[at_];
    if (slot.hash == hash_ && slot.text_bytes == piece.size() &&
        std::memcmp(texts_.data() + slot.text_at, piece.data(), piece.size()) == 0) {
      return std::span(ids_).subspan(slot.ids_at, slot.ids);
    }
  }
  return {};
}

void PieceCache::Add(std::string_view piece, std::span<const int32_t> ids) {
  TROUPE_CHECK(!piece.empty() && piece.size() <= kPieceBytesMax && !ids.empty());
  if (used_ == kSlots / 2) {
    std::fill(slots_.begin(), slots_.end(), Slot{});
    used_ = 0;
    texts_.clear();
    ids_.clear();
    at_ = hash_ & (kSlots - 1);
  }
  slots_[at_] = {.hash = hash_,
                 .text_at = static_cast<uint32_t>(texts_.size()),
                 .ids_at = static_cast<uint32_t>(ids_.size()),
                 .text_bytes = static_cast<uint16_t>(piece.size()),
                 .ids = static_cast<uint16_t>(ids.size())};
  texts_ += piece;
  ids_.insert(ids_.end(), ids.begin(), ids.end());
  ++used_;
}

}  // namespace troupe
