#include "data/prepare.h"

#include <algorithm>
#include <array>

#include "base/text/count_text.h"
#include "base/text/utf8.h"
#include "base/text_file.h"
#include "data/byte_tokenizer.h"
#include "data/dataset_description.h"
#include "data/decompressed_file.h"
#include "data/indexed_dataset_writer.h"
#include "data/json_lines.h"
#include "data/prefix_lock.h"
#include "data/tokenizer_file.h"

namespace troupe {
namespace {

constexpr int64_t kPartBytes = int64_t{1} << 20;
constexpr int64_t kBinaryProbeBytes = 8192;
// The largest document that is encoded as a whole.
constexpr int64_t kWholeBytesMax = int64_t{1} << 30;

// Returns the bytes of all regular files beneath `path`, as far as they can be seen.
int64_t BytesBeneath(FileSystem& files, const std::string& path) {
  int64_t bytes = 0;
  const auto entries = files.List(path);
  if (!entries.ok()) return bytes;
  for (const DirectoryEntry& entry : *entries) {
    const std::string child = JoinPath(path, entry.name);
    if (entry.kind == FileKind::kDirectory) {
      bytes += BytesBeneath(files, child);
    } else if (entry.kind == FileKind::kRegular) {
      const auto info = files.Stat(child, SymbolicLinks::kRefuse);
      if (info.ok()) bytes += info->size_bytes;
    }
  }
  return bytes;
}

class Walk {
 public:
  struct Parts {
    FileSystem& files;
    const PrepareOptions& options;
    Tokenizer& tokenizer;
    IndexedDatasetWriter& writer;
    PrepareResult& result;
  };
  // `bytes_total` is for the progress alone.
  Walk(Parts parts, int64_t bytes_total)
      : files_(parts.files),
        options_(parts.options),
        tokenizer_(parts.tokenizer),
        writer_(parts.writer),
        result_(parts.result) {
    progress_.bytes_total = bytes_total;
  }

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
    if ((*file)->size() == 0) {
      ++result_.skipped_empty;
      return OkStatus();
    }
    TROUPE_RETURN_IF_ERROR(CheckNoPointer(**file, path));
    TROUPE_RETURN_IF_ERROR(options_.json_as_text ? Text(**file, path) : LinesOrText(**file, path));
    bytes_before_ += (*file)->size();
    Report(0);
    return OkStatus();
  }

 private:
  // Refuses the text that Git LFS leaves in place of a file: it would be trained on instead.
  static Status CheckNoPointer(const ReadableFile& file, const std::string& path) {
    std::string head(kGitLfsPointerBegin.size(), '\0');
    if (file.size() < std::ssize(head)) return OkStatus();
    const Status read = file.ReadAt(0, std::as_writable_bytes(std::span(head)));
    // A file that cannot be read is skipped later.
    if (!read.ok() || !IsGitLfsPointer(head)) return OkStatus();
    return Annotate(GitLfsPointerFault(), path);
  }

  // Whether the file looks like JSON lines; reads its first bytes.
  StatusOr<bool> LooksLikeLines(DecompressedFile& file) {
    TROUPE_ASSIGN_OR_RETURN(const std::string_view part, file.Next());
    const std::string head(part);
    // Whoever reads the lines reports damage that comes later.
    const StatusOr<std::string_view> more = file.Next();
    const bool is_whole = more.ok() && more->empty();
    return LooksLikeJsonLines(head, is_whole, options_.json_key);
  }

  Status LinesOrText(const ReadableFile& file, const std::string& path) {
    const std::string key = options_.json_key.value_or(kDefaultJsonKey);
    if (!IsJsonLinesName(path)) {
      const auto start = DecompressedFile::Open(file, path);
      const auto looks = start.ok() ? LooksLikeLines(**start) : start.status();
      if (!looks.ok() || !*looks) {
        if (!start.ok() || !(*start)->is_compressed()) return Text(file, path);
        ++result_.skipped_binary;
        return OkStatus();
      }
      if (!options_.json_key.has_value()) {
        return InvalidArgument(
            "{} looks like JSON lines, but its name does not end in .jsonl, .jsonl.gz or "
            ".jsonl.zst: state --json-key KEY to make the string at that key of each line a "
            "document, or --json-as-text to make each file one document as it is",
            path);
      }
    }
    const auto opened = DecompressedFile::Open(file, path);
    if (!opened.ok()) {
      ++result_.skipped_unreadable;
      return OkStatus();
    }
    return Lines(**opened, {**opened, path, key});
  }

  Status Lines(const DecompressedFile& file, JsonLines lines) {
    for (bool is_empty = true;; is_empty = false) {
      TROUPE_ASSIGN_OR_RETURN(const bool is_there, lines.Next(part_));
      if (!is_there) {
        if (is_empty) ++result_.skipped_empty;
        return OkStatus();
      }
      CountReplaced(lines.replaced());
      if (part_.empty()) {
        ++result_.skipped_empty;
        continue;
      }
      const std::string_view text = part_;
      const size_t bytes = tokenizer_.encodes_parts() ? size_t{kPartBytes} : text.size();
      for (size_t at = 0; at < text.size(); at += bytes) {
        const Status encoded = Encode(text.substr(at, bytes));
        if (!encoded.ok()) return Annotate(encoded, lines.place());
      }
      TROUPE_RETURN_IF_ERROR(EndDocument());
      Report(file.bytes_read());
    }
  }

  Status Text(const ReadableFile& file, const std::string& path) {
    const int64_t size = file.size();
    const bool whole = !tokenizer_.encodes_parts();
    if (whole && size > kWholeBytesMax) {
      return ResourceExhausted(
          "{} has {} bytes; with a tokenizer.json a document has at most {} bytes: split it", path,
          size, kWholeBytesMax);
    }
    const int64_t part_bytes = whole ? size : kPartBytes;
    for (int64_t at = 0; at < size; at += part_bytes) {
      part_.resize(static_cast<size_t>(std::min(part_bytes, size - at)));
      const Status read = file.ReadAt(at, std::as_writable_bytes(std::span(part_)));
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
      if (whole) CountReplaced(ReplaceIllFormed(part_));
      TROUPE_RETURN_IF_ERROR(Annotate(Encode(part_), path));
      Report(at);
    }
    return EndDocument();
  }

  Status Encode(std::string_view part) {
    ids_.clear();
    TROUPE_RETURN_IF_ERROR(tokenizer_.Encode(part, ids_));
    result_.text_bytes += static_cast<int64_t>(part.size());
    return writer_.Append(ids_);
  }

  Status EndDocument() {
    TROUPE_RETURN_IF_ERROR(writer_.Append(std::array{tokenizer_.end_of_document()}));
    return writer_.EndDocument();
  }

  void CountReplaced(int64_t parts) {
    result_.replaced_parts += parts;
    if (parts > 0) ++result_.replaced_documents;
  }

  // `bytes` of the open file have been read.
  void Report(int64_t bytes) {
    if (!options_.progress) return;
    progress_.bytes_read = bytes_before_ + bytes;
    progress_.documents = writer_.documents();
    progress_.tokens = writer_.tokens();
    options_.progress(progress_);
  }

  FileSystem& files_;
  const PrepareOptions& options_;
  Tokenizer& tokenizer_;
  IndexedDatasetWriter& writer_;
  PrepareResult& result_;
  PrepareProgress progress_;
  int64_t bytes_before_ = 0;  // the sizes of the files that were read to their end
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
  int64_t bytes_total = 0;
  for (const std::string& path : options.paths) {
    TROUPE_ASSIGN_OR_RETURN(const FileInfo info, files.Stat(path, SymbolicLinks::kFollow));
    if (info.kind != FileKind::kRegular && info.kind != FileKind::kDirectory) {
      return InvalidArgument("{} is neither a regular file nor a directory", path);
    }
    kinds.push_back(info.kind);
    if (!options.progress) continue;
    bytes_total += info.kind == FileKind::kDirectory ? BytesBeneath(files, path) : info.size_bytes;
  }
  TROUPE_RETURN_IF_ERROR(MakeDirectories(files, ParentDirectory(options.output_prefix)));
  TROUPE_ASSIGN_OR_RETURN(const PrefixLock lock, PrefixLock::Acquire(options.output_prefix));
  PrepareResult result{.vocab_size = tokenizer->vocab_size(),
                       .end_of_document = tokenizer->end_of_document()};
  TROUPE_ASSIGN_OR_RETURN(
      std::unique_ptr<IndexedDatasetWriter> writer,
      IndexedDatasetWriter::Create(
          files, {.prefix = options.output_prefix, .type = TokenTypeFor(tokenizer->vocab_size())}));
  Walk walk({files, options, *tokenizer, *writer, result}, bytes_total);
  for (size_t i = 0; i < options.paths.size(); ++i) {
    TROUPE_RETURN_IF_ERROR(kinds[i] == FileKind::kDirectory
                               ? walk.Directory(options.paths[i])
                               : walk.File(options.paths[i], SymbolicLinks::kFollow));
  }
  if (writer->documents() == 0) {
    return InvalidArgument(
        "no document found in {}: {} binary, {} unreadable, {} empty files, {} links",
        CountText(options.paths.size(), "path"), result.skipped_binary, result.skipped_unreadable,
        result.skipped_empty, result.skipped_links);
  }
  result.documents = writer->documents();
  result.tokens = writer->tokens();
  TROUPE_RETURN_IF_ERROR(writer->Finish(DescriptionText({.tokenizer = options.tokenizer,
                                                         .vocab_size = result.vocab_size,
                                                         .end_of_document = result.end_of_document,
                                                         .tokens = result.tokens,
                                                         .text_bytes = result.text_bytes})));
  result.files = {options.output_prefix + ".bin", options.output_prefix + ".idx"};
  return result;
}

}  // namespace troupe
