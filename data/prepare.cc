#include "data/prepare.h"

#include <algorithm>
#include <array>

#include "base/text/utf8.h"
#include "data/byte_tokenizer.h"
#include "data/dataset_description.h"
#include "data/indexed_dataset_writer.h"
#include "data/tokenizer_file.h"

namespace troupe {
namespace {

constexpr int64_t kPartBytes = int64_t{1} << 20;
constexpr int64_t kBinaryProbeBytes = 8192;
// The largest document that is encoded as a whole.
constexpr int64_t kWholeBytesMax = int64_t{1} << 30;

class Walk {
 public:
  Walk(FileSystem& files, Tokenizer& tokenizer, IndexedDatasetWriter& writer, PrepareResult& result)
      : files_(files), tokenizer_(tokenizer), writer_(writer), result_(result) {}

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
    const bool whole = !tokenizer_.encodes_parts();
    if (whole && size > kWholeBytesMax) {
      return ResourceExhausted(
          "{} has {} bytes; with a tokenizer.json a document has at most {} bytes: split it", path,
          size, kWholeBytesMax);
    }
    const int64_t part_bytes = whole ? size : kPartBytes;
    for (int64_t at = 0; at < size; at += part_bytes) {
      part_.resize(static_cast<size_t>(std::min(part_bytes, size - at)));
      const Status read = (*file)->ReadAt(at, std::as_writable_bytes(std::span(part_)));
      if (!read.ok()) {
        // A file that fails in the middle would become a truncated document, so it may be skipped
        // only before its first token.
        if (at > 0) return read;
        ++result_.skipped_unreadable;
        return OkStatus();
      }
      if (at == 0 && part_.substr(0, kBinaryProbeBytes).find('\0') != std::string::npos) {
        ++result_.skipped_binary;
        return OkStatus();
      }
      if (whole) {
        const int64_t replaced = ReplaceIllFormed(part_);
        result_.replaced_parts += replaced;
        if (replaced > 0) ++result_.replaced_documents;
      }
      ids_.clear();
      TROUPE_RETURN_IF_ERROR(Annotate(tokenizer_.Encode(part_, ids_), path));
      TROUPE_RETURN_IF_ERROR(writer_.Append(ids_));
    }
    TROUPE_RETURN_IF_ERROR(writer_.Append(std::array{tokenizer_.end_of_document()}));
    return writer_.EndDocument();
  }

 private:
  FileSystem& files_;
  Tokenizer& tokenizer_;
  IndexedDatasetWriter& writer_;
  PrepareResult& result_;
  std::string part_;
  std::vector<int32_t> ids_;
};

StatusOr<std::unique_ptr<Tokenizer>> MakeTokenizer(FileSystem& files,
                                                   const PrepareOptions& options) {
  if (options.tokenizer == "bytes") {
    if (options.end_of_document.has_value()) {
      return InvalidArgument("end of document {}: the tokenizer bytes has a fixed one, {}",
                             *options.end_of_document, ByteTokenizer::kEndOfDocument);
    }
    return std::make_unique<ByteTokenizer>();
  }
  if (!options.tokenizer.ends_with(".json")) {
    return InvalidArgument("tokenizer \"{}\" is unknown; it must be bytes or PATH/tokenizer.json",
                           options.tokenizer);
  }
  return OpenTokenizerFile(files, options.tokenizer, options.end_of_document);
}

}  // namespace

StatusOr<PrepareResult> PrepareDataset(FileSystem& files, const PrepareOptions& options) {
  if (options.output_prefix.ends_with(".bin")) {
    return InvalidArgument("output prefix {} ends in .bin, as the names of llm.c's token files do",
                           options.output_prefix);
  }
  TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer,
                          MakeTokenizer(files, options));
  // All paths are checked first, so that a misspelt one fails before any work.
  std::vector<FileKind> kinds;
  for (const std::string& path : options.paths) {
    TROUPE_ASSIGN_OR_RETURN(const FileInfo info, files.Stat(path, SymbolicLinks::kFollow));
    if (info.kind != FileKind::kRegular && info.kind != FileKind::kDirectory) {
      return InvalidArgument("{} is neither a regular file nor a directory", path);
    }
    kinds.push_back(info.kind);
  }
  TROUPE_RETURN_IF_ERROR(MakeDirectories(files, ParentDirectory(options.output_prefix)));
  PrepareResult result{.vocab_size = tokenizer->vocab_size(),
                       .end_of_document = tokenizer->end_of_document()};
  TROUPE_ASSIGN_OR_RETURN(
      std::unique_ptr<IndexedDatasetWriter> writer,
      IndexedDatasetWriter::Create(
          files, {.prefix = options.output_prefix, .type = TokenTypeFor(tokenizer->vocab_size())}));
  Walk walk(files, *tokenizer, *writer, result);
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
  // An older description is removed before its data are replaced, and the new one is written after
  // the new data.
  const std::string& prefix = options.output_prefix;
  const Status removed = files.Remove(DescriptionPath(prefix));
  if (!removed.ok() && removed.code() != StatusCode::kNotFound) return removed;
  TROUPE_RETURN_IF_ERROR(writer->Finish());
  result.documents = writer->documents();
  result.tokens = writer->tokens();
  result.files = {prefix + ".bin", prefix + ".idx"};
  TROUPE_RETURN_IF_ERROR(WriteDescription(files, prefix,
                                          {.tokenizer = options.tokenizer,
                                           .vocab_size = result.vocab_size,
                                           .end_of_document = result.end_of_document,
                                           .tokens = result.tokens}));
  return result;
}

}  // namespace troupe
