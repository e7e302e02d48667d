#include "data/prepare.h"

#include <algorithm>
#include <array>

#include "data/byte_tokenizer.h"
#include "data/indexed_dataset_writer.h"

namespace troupe {
namespace {

constexpr int64_t kChunkBytes = int64_t{1} << 20;
constexpr int64_t kBinaryProbeBytes = 8192;

class Walk {
 public:
  Walk(FileSystem& files, IndexedDatasetWriter& writer, PrepareResult& result)
      : files_(files), writer_(writer), result_(result) {}

  Status Directory(const std::string& path) {
    const auto entries = files_.List(path);
    if (!entries.ok()) {
      ++result_.skipped_unreadable;
      return OkStatus();
    }
    for (const DirectoryEntry& entry : *entries) {
      const std::string child = JoinPath(path, entry.name);
      switch (entry.kind) {
        case FileKind::kDirectory:
          TROUPE_RETURN_IF_ERROR(Directory(child));
          break;
        case FileKind::kRegular:
          TROUPE_RETURN_IF_ERROR(File(child, SymbolicLinks::kRefuse));
          break;
        case FileKind::kSymbolicLink:
          ++result_.skipped_links;
          break;
        case FileKind::kOther:
          ++result_.skipped_special;
          break;
      }
    }
    return OkStatus();
  }

  Status File(const std::string& path, SymbolicLinks links) {
    const auto file = files_.Open(path, links);
    if (!file.ok()) {
      ++result_.skipped_unreadable;
      return OkStatus();
    }
    const int64_t size = (*file)->size();
    if (size == 0) {
      ++result_.skipped_empty;
      return OkStatus();
    }
    for (int64_t at = 0; at < size; at += kChunkBytes) {
      chunk_.resize(static_cast<size_t>(std::min(kChunkBytes, size - at)));
      const Status read = (*file)->ReadAt(at, chunk_);
      if (!read.ok()) {
        // A file that fails half-way would be a document cut short: only before its first token may
        // it be left out.
        if (at > 0) return read;
        ++result_.skipped_unreadable;
        return OkStatus();
      }
      if (at == 0) {
        const auto probe_end =
            chunk_.begin() + std::min<int64_t>(kBinaryProbeBytes, std::ssize(chunk_));
        if (std::find(chunk_.begin(), probe_end, std::byte{0}) != probe_end) {
          ++result_.skipped_binary;
          return OkStatus();
        }
      }
      ids_.clear();
      ByteTokenizer::Encode(chunk_, ids_);
      TROUPE_RETURN_IF_ERROR(writer_.Append(ids_));
    }
    TROUPE_RETURN_IF_ERROR(writer_.Append(std::array{ByteTokenizer::kEndOfDocument}));
    return writer_.EndDocument();
  }

 private:
  FileSystem& files_;
  IndexedDatasetWriter& writer_;
  PrepareResult& result_;
  std::vector<std::byte> chunk_;
  std::vector<int32_t> ids_;
};

}  // namespace

StatusOr<PrepareResult> PrepareDataset(FileSystem& files, const PrepareOptions& options) {
  if (options.tokenizer != "bytes") {
    return InvalidArgument("tokenizer \"{}\" is not known; there is: bytes", options.tokenizer);
  }
  // All paths are looked up first, so that a misspelt one costs no work.
  std::vector<FileKind> kinds;
  for (const std::string& path : options.paths) {
    TROUPE_ASSIGN_OR_RETURN(const FileInfo info, files.Stat(path, SymbolicLinks::kFollow));
    if (info.kind != FileKind::kRegular && info.kind != FileKind::kDirectory) {
      return InvalidArgument("{} is neither a regular file nor a directory", path);
    }
    kinds.push_back(info.kind);
  }
  TROUPE_RETURN_IF_ERROR(MakeDirectories(files, ParentDirectory(options.output_prefix)));
  PrepareResult result;
  TROUPE_ASSIGN_OR_RETURN(
      std::unique_ptr<IndexedDatasetWriter> writer,
      IndexedDatasetWriter::Create(files, {.prefix = options.output_prefix,
                                           .type = TokenTypeFor(ByteTokenizer::kVocabSize)}));
  Walk walk(files, *writer, result);
  for (size_t i = 0; i < options.paths.size(); ++i) {
    TROUPE_RETURN_IF_ERROR(kinds[i] == FileKind::kDirectory
                               ? walk.Directory(options.paths[i])
                               : walk.File(options.paths[i], SymbolicLinks::kFollow));
  }
  if (writer->documents() == 0) {
    return InvalidArgument(
        "no document found in {} paths: {} binary, {} unreadable, {} empty files, {} links",
        options.paths.size(), result.skipped_binary, result.skipped_unreadable,
        result.skipped_empty, result.skipped_links);
  }
  TROUPE_RETURN_IF_ERROR(writer->Finish());
  result.documents = writer->documents();
  result.tokens = writer->tokens();
  result.files = {options.output_prefix + ".bin", options.output_prefix + ".idx"};
  return result;
}

}  // namespace troupe
