// Reader of llm.c's token files. The header is 256 little-endian int32: [0] magic, [1] version, [2]
// number of tokens; the tokens follow. Magic 20240520 with version 1 has GPT-2's tokens as u16,
// 20240801 with version 7 has Llama 3's as u32. Every document begins with the end-of-text token of
// its tokenizer; a file may begin in the middle of a document. Memory-mapped; immutable,
// thread-safe.
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
  // NOT_FOUND if there is no file; INVALID_ARGUMENT names file, field and value if magic, version
  // or number of tokens contradict the format or the file's size.
  static StatusOr<LlmcTokenFile> Open(FileSystem& files, const std::string& path);

  const TokenArray& tokens() const { return tokens_; }

  // Returns the end of each document, ascending; the last is the number of tokens. Reads the whole
  // file.
  std::vector<int64_t> DocumentEnds() const;

 private:
  LlmcTokenFile(TokenArray tokens, int64_t end_of_text)
      : tokens_(std::move(tokens)), end_of_text_(end_of_text) {}

  TokenArray tokens_;
  int64_t end_of_text_;
};

}  // namespace troupe

#endif  // TROUPE_DATA_LLMC_TOKEN_FILE_H_
