// `troupe data prepare` converts text files and JSON lines into one indexed dataset.
#ifndef TROUPE_DATA_PREPARE_H_
#define TROUPE_DATA_PREPARE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "base/status.h"

namespace troupe {

struct PrepareProgress {
  int64_t bytes_read = 0;   // compressed, if the files are
  int64_t bytes_total = 0;  // all files, before the first was read
  int64_t documents = 0;
  int64_t tokens = 0;
};

struct PrepareOptions {
  std::string output_prefix;               // its directory is created if missing
  std::string tokenizer = "bytes";         // or the path of a tokenizer.json
  std::optional<int64_t> end_of_document;  // id that overrides the one from the tokenizer.json
  std::vector<std::string> paths;          // files and directories, read in this order
  // The key of JSON lines that has the text. If it is stated, a file of any name is read as JSON
  // lines if it looks like them.
  std::optional<std::string> json_key;
  bool json_as_text = false;  // every file is one text
  // If set, it is called after each document and after each part of a large one.
  std::function<void(const PrepareProgress&)> progress;
};

struct PrepareResult {
  int64_t documents = 0;
  int64_t tokens = 0;
  int64_t text_bytes = 0;          // the text that the tokens stand for, without ends of documents
  std::vector<std::string> files;  // PREFIX.bin, PREFIX.idx
  int64_t vocab_size = 0;          // above every id
  int32_t end_of_document = 0;
  // Ill-formed parts of UTF-8 that became U+FFFD, and the documents that contained them.
  int64_t replaced_parts = 0;
  int64_t replaced_documents = 0;
  // Counts of what was skipped.
  int64_t skipped_binary = 0;      // a zero byte among the first 8,192, or compressed
  int64_t skipped_unreadable = 0;  // no permission, or removed meanwhile
  int64_t skipped_empty = 0;       // files and documents without text, JSON lines without a line
  int64_t skipped_links = 0;       // symbolic links, which could repeat a file or form a cycle
  int64_t skipped_special = 0;     // FIFOs, sockets, devices
};

// Walks each path (directories in the byte order of their names, so that the same files produce the
// same dataset on every machine) and makes every regular text file one document, and every line of
// JSON lines (data/json_lines.h) another one, followed by an end of document. Writes PREFIX.bin and
// PREFIX.idx, as u16 if the vocabulary is below 65500, else as i32, and PREFIX.troupe.json with the
// vocabulary (data/dataset_description.h). For a tokenizer.json, ill-formed UTF-8 in a file becomes
// U+FFFD, as with Python's errors="replace", and is counted.
//
// NOT_FOUND for a path that does not exist. INVALID_ARGUMENT for an unknown or unsupported
// tokenizer, for a prefix that ends in .bin (data/token_dataset.h), for a file that looks like JSON
// lines without being named like them, for a pointer of Git LFS in place of a file, or if no
// document is found. FAILED_PRECONDITION if another process writes the prefix. RESOURCE_EXHAUSTED
// for a text of more than 1 GiB with a tokenizer.json. Also returns the errors of JsonLines::Next.
// After an error the files are those that were there before, unless one of the last renames failed:
// there is no index then, and so no dataset.
StatusOr<PrepareResult> PrepareDataset(FileSystem& files, const PrepareOptions& options);

}  // namespace troupe

#endif  // TROUPE_DATA_PREPARE_H_
