// `troupe data prepare`: text files into one indexed dataset.
#ifndef TROUPE_DATA_PREPARE_H_
#define TROUPE_DATA_PREPARE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "base/status.h"

namespace troupe {

struct PrepareOptions {
  std::string output_prefix;  // its directory is made if missing
  std::string tokenizer = "bytes";  // or the path of a tokenizer.json
  std::optional<int64_t> end_of_document;  // its id, where the tokenizer.json is not to say it
  std::vector<std::string> paths;  // files and directories, taken in this order
};

struct PrepareResult {
  int64_t documents = 0;
  int64_t tokens = 0;
  std::vector<std::string> files;  // PREFIX.bin, PREFIX.idx
  int64_t vocab_size = 0;          // every id is below it
  int32_t end_of_document = 0;
  // Ill-formed parts of UTF-8 that became U+FFFD, and the documents that held them.
  int64_t replaced_parts = 0;
  int64_t replaced_documents = 0;
  // What the walk met and left out.
  int64_t skipped_binary = 0;      // a zero byte among the first 8,192
  int64_t skipped_unreadable = 0;  // files and directories without permission, or gone since
  int64_t skipped_empty = 0;
  int64_t skipped_links = 0;    // symbolic links, which could repeat a file or never end
  int64_t skipped_special = 0;  // FIFOs, sockets, devices
};

// Walks each path (directories in the order of their names' bytes, so that the same files give the
// same dataset on every machine), takes every regular text file as one document and an end of
// document, and writes PREFIX.bin and PREFIX.idx, as u16 where the vocabulary is below 65500, else as
// i32; PREFIX.troupe.json says the vocabulary (data/dataset_description.h). A tokenizer.json takes text: what is no UTF-8 in a file becomes U+FFFD, as Python's
// errors="replace" would have it, and is counted. NOT_FOUND for a path that is not there,
// INVALID_ARGUMENT for a tokenizer that is not known or not supported, for a prefix that ends in .bin
// (data/token_dataset.h) or where no document is found,
// RESOURCE_EXHAUSTED for a text of more than 1 GiB beside a tokenizer.json; on an error nothing is
// left behind, unless it is the last file, the description, that fails.
StatusOr<PrepareResult> PrepareDataset(FileSystem& files, const PrepareOptions& options);

}  // namespace troupe

#endif  // TROUPE_DATA_PREPARE_H_
