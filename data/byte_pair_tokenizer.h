// Byte-level BPE, the tokenizers of GPT-2 and Llama 3, as `tokenizer.json` describes them.
//
// Gives the ids that the PyPI package `tokenizers` gives for encode(text, add_special_tokens=False):
// added tokens are found first, what stands between them is cut into pieces by the patterns, each
// piece becomes bytes, and these are joined by the merges. The file's post-processor, which puts
// special tokens around a text, has no part in it: the only token that is not of the text is the end
// of document.
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
  AddedTokens normalized_added;  // found in what lies between those
  bool add_prefix_space;         // before what stands between added tokens, where it begins with none
  std::vector<SplitPattern> patterns;  // each cuts the pieces of the one before
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
  // What stands between added tokens, then the pieces of pattern `level` and those after it.
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
