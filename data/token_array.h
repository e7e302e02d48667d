// The tokens of one file, memory-mapped: a contiguous array of one element type. Immutable,
// thread-safe; copies share the mapping.
#ifndef TROUPE_DATA_TOKEN_ARRAY_H_
#define TROUPE_DATA_TOKEN_ARRAY_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/file_system.h"
#include "base/status.h"
#include "data/tokens.h"

namespace troupe {

class TokenArray {
 public:
  // Refers to the `tokens` tokens from byte `offset` of `file`, which is at `path`. REQUIRES: they
  // are within the file.
  TokenArray(std::string path, std::shared_ptr<const MappedFile> file, int64_t offset,
             TokenType type, int64_t tokens);

  const std::string& path() const { return path_; }
  TokenType type() const { return type_; }
  int64_t tokens() const { return tokens_; }
  // Returns the bytes of the whole file.
  std::span<const std::byte> file_bytes() const { return file_->bytes(); }

  // Fills `out` with the tokens from `position`. INVALID_ARGUMENT names the file, the value and its
  // position if a token is not an integer in [0, vocab_size). REQUIRES: the range is within [0,
  // tokens()).
  Status Read(int64_t position, int64_t vocab_size, std::span<int32_t> out) const;

 private:
  std::string path_;
  std::shared_ptr<const MappedFile> file_;
  const std::byte* begin_;
  TokenType type_;
  int64_t tokens_;
};

}  // namespace troupe

#endif  // TROUPE_DATA_TOKEN_ARRAY_H_
