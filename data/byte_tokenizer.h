// The byte-level tokenizer `bytes`: ids 0–255 are the bytes themselves, 256 ends a document.
#ifndef TROUPE_DATA_BYTE_TOKENIZER_H_
#define TROUPE_DATA_BYTE_TOKENIZER_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace troupe {

class ByteTokenizer {
 public:
  static constexpr int32_t kEndOfDocument = 256;
  static constexpr int64_t kVocabSize = 257;

  // Puts the ids of `bytes` behind what `ids` holds; never adds an end of document.
  static void Encode(std::span<const std::byte> bytes, std::vector<int32_t>& ids) {
    ids.reserve(ids.size() + bytes.size());
    for (const std::byte byte : bytes) ids.push_back(std::to_integer<int32_t>(byte));
  }

  // The bytes of `ids`; ends of documents and ids above them give nothing.
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
