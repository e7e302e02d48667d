// PREFIX.troupe.json: what `data prepare` knows of a dataset and the indexed format does not say.
// `{"tokenizer": …, "vocab_size": …, "end_of_document": …, "tokens": …}`. A dataset without one, as
// other tools make it, is as good: then a token that the model lacks shows when it is read.
#ifndef TROUPE_DATA_DATASET_DESCRIPTION_H_
#define TROUPE_DATA_DATASET_DESCRIPTION_H_

#include <cstdint>
#include <string>

#include "base/file_system.h"
#include "base/status.h"

namespace troupe {

struct DatasetDescription {
  std::string tokenizer;        // "bytes" or the path of the tokenizer.json
  int64_t vocab_size = 0;       // every id is below it
  int64_t end_of_document = 0;  // its id
  int64_t tokens = 0;           // of the .bin file
};

std::string DescriptionPath(const std::string& prefix);

// Durable on return.
Status WriteDescription(FileSystem& files, const std::string& prefix,
                        const DatasetDescription& description);

// OK where there is none. INVALID_ARGUMENT where it is of another dataset than that of `tokens`
// tokens, or where its vocabulary is larger than `vocab_size`, naming file, value and relation.
Status CheckDescription(FileSystem& files, const std::string& prefix, int64_t tokens,
                        int64_t vocab_size);

}  // namespace troupe

#endif  // TROUPE_DATA_DATASET_DESCRIPTION_H_
