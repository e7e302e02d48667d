// The byte-level tokenizer `bytes`: ids 0–255 are the bytes themselves, 256 ends a document.
#ifndef TROUPE_DATA_BYTE_TOKENIZER_H_
#define TROUPE_DATA_BYTE_TOKENIZER_H_

#include <span>
#include <string>

#include "data/tokenizer.h"

namespace troupe {

class ByteTokenizer final : public Tokenizer {
 public:
  static constexpr int32_t kEndOfDocument = 256;
  static constexpr int64_t kVocabSize = 257;

  Status Encode(std::string_view text, std::vector<int32_t>& ids) override {
    ids.reserve(ids.size() + text.size());
    for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
    return OkStatus();
  }
  bool encodes_parts() const override { return true; }
  int64_t vocab_size() const override { return kVocabSize; }
  int32_t end_of_document() const override { return kEndOfDocument; }

  // Returns the bytes of `ids`; an end of document or a larger id produces no byte.
  static std::string Decode(std::span<const int32_t> ids) {
    std::string text;
    for (const int32_t id : ids) {
      if (id >= 0 && id < 256) text.push_back(static_cast<char>(id));
    }
    return text;
  }
};

}  // namespace troupe

#endif  // TROUPE_DATA_BYTE_TOKENIZER_H_
