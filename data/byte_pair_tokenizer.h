// Byte-level BPE, the tokenizers of GPT-2 and Llama 3, as `tokenizer.json` describes them.
//
// It produces the ids that the PyPI package `tokenizers` returns for encode(text,
// add_special_tokens=False). Added tokens are found first; the text between them is split into
// pieces by the patterns; each piece becomes bytes, which the merges join. The file's
// post-processor, which adds special tokens around a text, is not used: the only token not from the
// text is the end of document.
#ifndef TROUPE_DATA_BYTE_PAIR_TOKENIZER_H_
#define TROUPE_DATA_BYTE_PAIR_TOKENIZER_H_

#include <string>
#include <vector>

#include "data/added_tokens.h"
#include "data/byte_pair_model.h"
#include "data/piece_cache.h"
#include "data/split_pattern.h"
#include "data/tokenizer.h"

namespace troupe {

struct BytePairDescription {
  BytePairModel model;
  AddedTokens raw_added;         // found in the text first
  AddedTokens normalized_added;  // found in the text between those
  // Adds a space to each text between added tokens that does not begin with one.
  bool add_prefix_space;
  std::vector<SplitPattern> patterns;  // each splits the pieces of the previous one
  int64_t vocab_size;
  int32_t end_of_document;
};

class BytePairTokenizer final : public Tokenizer {
 public:
  explicit BytePairTokenizer(BytePairDescription description);
  BytePairTokenizer(const BytePairTokenizer&) = delete;  // the cutters point into the description

  // REQUIRES: text is well-formed UTF-8.
  Status Encode(std::string_view text, std::vector<int32_t>& ids) override;
  bool encodes_parts() const override { return false; }
  int64_t vocab_size() const override { return description_.vocab_size; }
  int32_t end_of_document() const override { return description_.end_of_document; }

 private:
  // EncodeBetween encodes the text between raw added tokens, EncodeSegment the text between all
  // added tokens; Cut applies pattern `level` and all later ones.
  Status EncodeBetween(std::string_view text, std::vector<int32_t>& ids);
  Status EncodeSegment(std::string_view text, std::vector<int32_t>& ids);
  Status Cut(size_t level, std::string_view text, std::vector<int32_t>& ids);
  void EncodePiece(std::string_view piece, std::vector<int32_t>& ids);

  const BytePairDescription description_;
  std::vector<SplitPattern::Cutter> cutters_;
  PieceCache cache_;
  std::string prefixed_;
};

}  // namespace troupe

#endif  // TROUPE_DATA_BYTE_PAIR_TOKENIZER_H_
