#include "data/token_dataset.h"

namespace troupe {

StatusOr<TokenDataset> TokenDataset::Open(FileSystem& files, const std::string& path) {
  if (path.ends_with(".bin")) {
    TROUPE_ASSIGN_OR_RETURN(LlmcTokenFile file, LlmcTokenFile::Open(files, path));
    return TokenDataset(std::move(file));
  }
  TROUPE_ASSIGN_OR_RETURN(IndexedDataset dataset, IndexedDataset::Open(files, path));
  return TokenDataset(std::move(dataset));
}

const TokenArray& TokenDataset::tokens() const {
  const auto* const indexed = std::get_if<IndexedDataset>(&source_);
  return indexed != nullptr ? indexed->token_array() : std::get<LlmcTokenFile>(source_).tokens();
}

std::optional<int64_t> TokenDataset::documents() const {
  const auto* const indexed = std::get_if<IndexedDataset>(&source_);
  return indexed != nullptr ? std::optional(indexed->documents()) : std::nullopt;
}

std::vector<TokenDataset::File> TokenDataset::files() const {
  const auto* const indexed = std::get_if<IndexedDataset>(&source_);
  if (indexed == nullptr) return {{.bytes = tokens().file_bytes()}};
  return {{.name = ".idx", .is_index = true, .bytes = indexed->index_bytes()},
          {.name = ".bin", .bytes = tokens().file_bytes()}};
}

std::vector<int64_t> TokenDataset::SequenceEnds() const {
  if (const auto* const file = std::get_if<LlmcTokenFile>(&source_)) return file->DocumentEnds();
  const auto& indexed = std::get<IndexedDataset>(source_);
  std::vector<int64_t> ends(static_cast<size_t>(indexed.sequences()));
  for (int64_t i = 0; i < indexed.sequences(); ++i) {
    ends[static_cast<size_t>(i)] = indexed.SequenceBegin(i + 1);
  }
  return ends;
}

std::vector<int64_t> TokenDataset::DocumentEnds() const {
  if (const auto* const file = std::get_if<LlmcTokenFile>(&source_)) return file->DocumentEnds();
  const auto& indexed = std::get<IndexedDataset>(source_);
  std::vector<int64_t> ends(static_cast<size_t>(indexed.documents()));
  for (int64_t i = 0; i < indexed.documents(); ++i) {
    ends[static_cast<size_t>(i)] = indexed.SequenceBegin(indexed.DocumentBegin(i + 1));
  }
  return ends;
}

}  // namespace troupe
