// Reader of llm.c's token files: a header of 256 int32, little-endian, [0] magic, [1] version, [2]
// number of tokens, then the tokens. 20240520 with version 1 has GPT-2's as u16, 20240801 with
// version 7 has Llama 3's as u32. Every document begins with the end-of-text token of its tokenizer;
// a file may begin within one. Memory-mapped; immutable, thread-safe.
#ifndef TROUPE_DATA_LLMC_TOKEN_FILE_H_
#define TROUPE_DATA_LLMC_TOKEN_FILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "base/status.h"
#include "data/token_array.h"

namespace troupe {

class LlmcTokenFile {
 public:
  // NOT_FOUND where there is none, INVALID_ARGUMENT naming file, field and value where magic,
  // version or number of tokens are not what the definition or the file's size says.
  static StatusOr<LlmcTokenFile> Open(FileSystem& files, const std::string& path);

  const TokenArray& tokens() const { return tokens_; }

  // Where each document ends, ascending; the last one is the number of tokens. Reads the whole file.
  std::vector<int64_t> DocumentEnds() const;

 private:
  LlmcTokenFile(TokenArray tokens, int64_t end_of_text)
      : tokens_(std::move(tokens)), end_of_text_(end_of_text) {}

  TokenArray tokens_;
  int64_t end_of_text_;
};

}  // namespace troupe

#endif  // TROUPE_DATA_LLMC_TOKEN_FILE_H_
