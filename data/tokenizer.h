// Text into token ids. There are two kinds: bytes (data/byte_tokenizer.h) and byte-level BPE
// (data/byte_pair_tokenizer.h). Not thread-safe: a tokenizer may keep a cache.
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

  // Puts the ids of the whole document `text` behind what `ids` holds; never adds an end of
  // document. After an error `ids` holds a part.
  virtual Status Encode(std::string_view text, std::vector<int32_t>& ids) = 0;

  // Whether a document may be cut anywhere and its parts encoded one by one.
  virtual bool encodes_parts() const = 0;

  // Every id is below it.
  virtual int64_t vocab_size() const = 0;
  virtual int32_t end_of_document() const = 0;
};

}  // namespace troupe

#endif  // TROUPE_DATA_TOKENIZER_H_
