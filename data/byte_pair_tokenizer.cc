#include "data/byte_pair_tokenizer.h"

namespace troupe {

BytePairTokenizer::BytePairTokenizer(BytePairDescription description)
    : description_(std::move(description)) {
  for (const SplitPattern& pattern : description_.patterns) cutters_.emplace_back(pattern);
}

Status BytePairTokenizer::Encode(std::string_view text, std::vector<int32_t>& ids) {
  while (const auto hit = description_.raw_added.Find(text)) {
    TROUPE_RETURN_IF_ERROR(EncodeBetween(text.substr(0, hit->begin), ids));
    ids.push_back(hit->id);
    text.remove_prefix(hit->begin + hit->bytes);
  }
  return EncodeBetween(text, ids);
}

Status BytePairTokenizer::EncodeBetween(std::string_view text, std::vector<int32_t>& ids) {
  while (const auto hit = description_.normalized_added.Find(text)) {
    TROUPE_RETURN_IF_ERROR(EncodeSegment(text.substr(0, hit->begin), ids));
    ids.push_back(hit->id);
    text.remove_prefix(hit->begin + hit->bytes);
  }
  return EncodeSegment(text, ids);
}

Status BytePairTokenizer::EncodeSegment(std::string_view text, std::vector<int32_t>& ids) {
  if (text.empty()) return OkStatus();
  if (description_.add_prefix_space && text[0] != ' ') {
    prefixed_ = ' ';
    prefixed_ += text;
    text = prefixed_;
  }
  return Cut(0, text, ids);
}

Status BytePairTokenizer::Cut(size_t level, std::string_view text, std::vector<int32_t>& ids) {
  if (level == cutters_.size()) {
    EncodePiece(text, ids);
    return OkStatus();
  }
  while (!text.empty()) {
    TROUPE_ASSIGN_OR_RETURN(const size_t bytes, cutters_[level].FirstPiece(text));
    TROUPE_RETURN_IF_ERROR(Cut(level + 1, text.substr(0, bytes), ids));
    text.remove_prefix(bytes);
  }
  return OkStatus();
}

void BytePairTokenizer::EncodePiece(std::string_view piece, std::vector<int32_t>& ids) {
  if (piece.size() > PieceCache::kPieceBytesMax) {
    description_.model.Encode(piece, ids);
    return;
  }
  const std::span<const int32_t> known = cache_.Find(piece);
  if (!known.empty()) {
    ids.insert(ids.end(), known.begin(), known.end());
    return;
  }
  const size_t begin = ids.size();
  description_.model.Encode(piece, ids);
  cache_.Add(piece, std::span(ids).subspan(begin));
}

}  // namespace troupe
