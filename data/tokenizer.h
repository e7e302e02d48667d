// Converts text into token ids. There are two kinds: bytes (data/byte_tokenizer.h) and byte-level
// BPE (data/byte_pair_tokenizer.h). Not thread-safe: a tokenizer may keep a cache.
#ifndef TROUPE_DATA_TOKENIZER_H_
#define TROUPE_DATA_TOKENIZER_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace troupe {

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // Appends the ids of the whole document `text` to `ids`, without an end of document. After an
  // error `ids` holds a part of them.
  virtual Status Encode(std::string_view text, std::vector<int32_t>& ids) = 0;

  // Returns whether a document may be split anywhere and its parts encoded one by one.
  virtual bool encodes_parts() const = 0;

  // Returns a bound above every id.
  virtual int64_t vocab_size() const = 0;
  virtual int32_t end_of_document() const = 0;
};

}  // namespace troupe

#endif  // TROUPE_DATA_TOKENIZER_H_
