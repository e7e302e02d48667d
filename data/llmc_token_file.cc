#include "data/llmc_token_file.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "base/check.h"
#include "base/text_file.h"

namespace troupe {
namespace {

constexpr int64_t kHeaderBytes = 1024;
constexpr const char* kNamedByPrefix = "a pair PREFIX.bin and PREFIX.idx is named by its PREFIX";

struct Kind {
  int32_t magic;
  int32_t version;
  TokenType type;
  int32_t end_of_text;
};

constexpr Kind kKinds[] = {{20240520, 1, TokenType::kUint16, 50256},
                           {20240801, 7, TokenType::kUint32, 128000}};

}  // namespace

StatusOr<LlmcTokenFile> LlmcTokenFile::Open(FileSystem& files, const std::string& path) {
  // Users link datasets into place, so symbolic links are followed here.
  TROUPE_ASSIGN_OR_RETURN(std::shared_ptr<const MappedFile> file,
                          files.Map(path, SymbolicLinks::kFollow));
  if (IsGitLfsPointer(file->bytes())) return Annotate(GitLfsPointerFault(), path);
  const int64_t size = static_cast<int64_t>(file->bytes().size());
  if (size < kHeaderBytes) {
    return InvalidArgument("{}: size {} is below the {} bytes of llm.c's header; {}", path, size,
                           kHeaderBytes, kNamedByPrefix);
  }
  std::array<int32_t, 3> header;
  std::memcpy(header.data(), file->bytes().data(), sizeof header);
  const auto kind = std::find_if(std::begin(kKinds), std::end(kKinds),
                                 [&](const Kind& known) { return known.magic == header[0]; });
  if (kind == std::end(kKinds)) {
    return InvalidArgument(
        "{}: magic {} is neither 20240520 nor 20240801; this is not a token file of llm.c; {}",
        path, header[0], kNamedByPrefix);
  }
  if (header[1] != kind->version) {
    return InvalidArgument("{}: version {} is not {}, the version with magic {}", path, header[1],
                           kind->version, header[0]);
  }
  const int64_t tokens = header[2];
  if (tokens < 0 || size != kHeaderBytes + tokens * TokenBytes(kind->type)) {
    return InvalidArgument("{}: token count {} with {} bytes each does not give the file's size {}",
                           path, tokens, TokenBytes(kind->type), size);
  }
  return LlmcTokenFile(TokenArray(path, std::move(file), kHeaderBytes, kind->type, tokens),
                       kind->end_of_text);
}

std::vector<int64_t> LlmcTokenFile::DocumentEnds() const {
  std::vector<int64_t> ends;
  std::array<int32_t, 4096> part;
  for (int64_t at = 0; at < tokens_.tokens(); at += std::ssize(part)) {
    const auto here = std::span(part).first(
        static_cast<size_t>(std::min(std::ssize(part), tokens_.tokens() - at)));
    // Any value is accepted here: an invalid token ends no document, and training refuses it.
    TROUPE_CHECK_OK(tokens_.Read(at, std::numeric_limits<int64_t>::max(), here));
    for (size_t i = 0; i < here.size(); ++i) {
      const int64_t position = at + static_cast<int64_t>(i);
      if (here[i] == end_of_text_ && position > 0) ends.push_back(position);
    }
  }
  if (tokens_.tokens() > 0) ends.push_back(tokens_.tokens());
  return ends;
}

}  // namespace troupe
