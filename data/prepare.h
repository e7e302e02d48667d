// `troupe data prepare`: text files into one indexed dataset.
#ifndef TROUPE_DATA_PREPARE_H_
#define TROUPE_DATA_PREPARE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "base/status.h"

namespace troupe {

struct PrepareOptions {
  std::string output_prefix;  // its directory is made if missing
  std::string tokenizer = "bytes";
  std::vector<std::string> paths;  // files and directories, taken in this order
};

struct PrepareResult {
  int64_t documents = 0;
  int64_t tokens = 0;
  std::vector<std::string> files;  // PREFIX.bin, PREFIX.idx
  // What the walk met and left out.
  int64_t skipped_binary = 0;      // a zero byte among the first 8,192
  int64_t skipped_unreadable = 0;  // files and directories without permission, or gone since
  int64_t skipped_empty = 0;
  int64_t skipped_links = 0;    // symbolic links, which could repeat a file or never end
  int64_t skipped_special = 0;  // FIFOs, sockets, devices
};

// Walks each path (directories in the order of their names' bytes, so that the same files give the
// same dataset on every machine), takes every regular text file as one document of its bytes and an
// end of document, and writes PREFIX.bin and PREFIX.idx as u16. NOT_FOUND for a path that is not
// there, INVALID_ARGUMENT for an unknown tokenizer or where no document is found; on an error no
// file is left behind.
StatusOr<PrepareResult> PrepareDataset(FileSystem& files, const PrepareOptions& options);

}  // namespace troupe

#endif  // TROUPE_DATA_PREPARE_H_
