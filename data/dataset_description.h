// PREFIX.troupe.json: facts from `data prepare` that the indexed format does not record.
// `{"tokenizer": …, "vocab_size": …, "end_of_document": …, "tokens": …, "text_bytes": …}`. A
// dataset without this file, such as other tools create, is valid too: a token that the model lacks
// is then detected when it is read. Older versions wrote no text_bytes.
#ifndef TROUPE_DATA_DATASET_DESCRIPTION_H_
#define TROUPE_DATA_DATASET_DESCRIPTION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/file_system.h"
#include "base/status.h"

namespace troupe {

struct DatasetDescription {
  std::string tokenizer;        // "bytes" or the path of the tokenizer.json
  int64_t vocab_size = 0;       // above every id
  int64_t end_of_document = 0;  // id of the end-of-document token
  int64_t tokens = 0;           // tokens in the .bin file
  int64_t text_bytes = 0;       // the text that the tokens stand for, without ends of documents
};

std::string DescriptionPath(const std::string& prefix);

// Returns the text of the file.
std::string DescriptionText(const DatasetDescription& description);

// Returns the text of the description; none if there is no such file. RESOURCE_EXHAUSTED if it is
// longer than 1 MiB.
StatusOr<std::optional<std::string>> ReadDescription(FileSystem& files, const std::string& prefix);

// INVALID_ARGUMENT names file, value and relation if `text`, the description of `prefix`, is of a
// dataset with a number of tokens other than `tokens`, or if its vocabulary is larger than
// `vocab_size`.
Status CheckDescription(std::string_view text, const std::string& prefix, int64_t tokens,
                        int64_t vocab_size);

}  // namespace troupe

#endif  // TROUPE_DATA_DATASET_DESCRIPTION_H_
