// Reader of `tokenizer.json` (huggingface/tokenizers) of the byte-level BPE kind.
//
// Accepted: model BPE over the whole byte alphabet, with merges as pairs or as "a b" and with or
// without ignore_merges; pre_tokenizer ByteLevel, or a Sequence of Split by a regular expression
// (data/split_pattern.h; behavior Isolated) and at last ByteLevel; added tokens without lstrip,
// rstrip and single_word. Whatever else would change an id (normalizers, truncation, padding,
// dropout, byte_fallback, affixes of subwords, other models and pre-tokenizers, keys that are not
// known) is refused by its name. Decoder and post-processor are not looked at: they have no part in
// the ids of a text without special tokens around it.
#ifndef TROUPE_DATA_TOKENIZER_FILE_H_
#define TROUPE_DATA_TOKENIZER_FILE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/file_system.h"
#include "base/status.h"
#include "data/tokenizer.h"

namespace troupe {

// The end of document is `end_of_document`, else the `eos_token` that tokenizer_config.json beside
// the file names, else the token `<|endoftext|>` or `<|end_of_text|>`; INVALID_ARGUMENT where there
// is none of these. Errors name file, key and value.
StatusOr<std::unique_ptr<Tokenizer>> OpenTokenizerFile(FileSystem& files, const std::string& path,
                                                       std::optional<int64_t> end_of_document);

}  // namespace troupe

#endif  // TROUPE_DATA_TOKENIZER_FILE_H_
