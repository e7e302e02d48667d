// The files of a Hugging Face directory that serving needs in addition to the model: those of the
// tokenizer, the chat templates and the settings of generation. An export copies them unchanged.
//
// Symbolic links are followed, because a directory in Hugging Face's cache consists of them.
#ifndef TROUPE_INTEROP_TOKENIZER_FILES_H_
#define TROUPE_INTEROP_TOKENIZER_FILES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "base/status.h"

namespace troupe {

// Larger files are refused. A tokenizer.json of 256,000 tokens has about 35 MB.
inline constexpr int64_t kTokenizerFileBytesMax = int64_t{256} << 20;

struct TokenizerFiles {
  std::string directory;
  std::vector<std::string> names;  // paths within the directory
  bool has_tokenizer = false;      // one of the files has the tokenizer's vocabulary
};

// Finds the files of this kind that `directory` has. NOT_FOUND if there is no such directory;
// INVALID_ARGUMENT if `directory` is a file, or names an entry of it that is no regular file, is a
// link to nothing, is a pointer of Git LFS in place of a file, or is too large. Other errors of the
// file system, also for a file that cannot be opened for reading.
StatusOr<TokenizerFiles> FindTokenizerFiles(FileSystem& files, const std::string& directory);

// Returns the names of the files that have a vocabulary, for messages: "a, b or c".
std::string TokenizerFileNames();

// Copies the files into the directory `to`. ALREADY_EXISTS names a file that `to` has already;
// other errors of the file system. Contents are durable on return; the names in `to` are once `to`
// is synced.
Status CopyTokenizerFiles(FileSystem& files, const TokenizerFiles& from, const std::string& to);

}  // namespace troupe

#endif  // TROUPE_INTEROP_TOKENIZER_FILES_H_
