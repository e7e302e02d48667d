// Reader of `tokenizer.json` (huggingface/tokenizers) of the byte-level BPE kind.
//
// Accepted: model BPE over the whole byte alphabet, with merges as pairs or as "a b" and with or
// without ignore_merges; pre_tokenizer ByteLevel, or a Sequence of Splits by a regular expression
// (data/split_pattern.h; behavior Isolated) with ByteLevel as its last step; added tokens without
// lstrip, rstrip and single_word. Anything else that would change an id (normalizers, truncation,
// padding, dropout, byte_fallback, affixes of subwords, other models and pre-tokenizers, unknown
// keys) is refused by name. Decoder and post-processor are ignored: they do not affect the ids of a
// text without special tokens around it.
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

// Opens the tokenizer at `path`. The end of document is `end_of_document`, else the `eos_token` in
// tokenizer_config.json next to the file, else the token `<|endoftext|>` or `<|end_of_text|>`;
// INVALID_ARGUMENT if there is none of these. Errors name file, key and value.
StatusOr<std::unique_ptr<Tokenizer>> OpenTokenizerFile(FileSystem& files, const std::string& path,
                                                       std::optional<int64_t> end_of_document);

}  // namespace troupe

#endif  // TROUPE_DATA_TOKENIZER_FILE_H_
