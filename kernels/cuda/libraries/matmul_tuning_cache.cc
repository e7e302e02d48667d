#include "kernels/cuda/libraries/matmul_tuning_cache.h"

#include <charconv>
#include <utility>
#include <vector>

namespace troupe::kernels::cuda {
namespace {

const char* NameOf(MatmulKind kind) {
  switch (kind) {
    case MatmulKind::kForward:
      return "forward";
    case MatmulKind::kInputGradient:
      return "input_gradient";
    case MatmulKind::kWeightGradient:
      return "weight_gradient";
  }
  return "unknown";
}

// The dtype of the operands, as text.
const char* FormatOf(const MatmulShape& shape) {
  switch (shape.float8) {
    case Float8Scaling::kNone:
      return shape.bfloat16 ? "bfloat16" : "float32";
    case Float8Scaling::kWhole:
      return "float8";
    case Float8Scaling::kBlocks:
      return "float8-blocks";
  }
  return "unknown";
}

constexpr MatmulShape kFormats[] = {{MatmulKind::kForward, false, 0, 0, 0},
                                    {MatmulKind::kForward, true, 0, 0, 0},
                                    {MatmulKind::kForward, true, 0, 0, 0, Float8Scaling::kWhole},
                                    {MatmulKind::kForward, true, 0, 0, 0, Float8Scaling::kBlocks}};

std::string KeyText(const MatmulTuningKey& key) {
  return fmt::format("{} limit={}", ShapeText(key.shape), key.workspace_limit);
}

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    text = end == std::string_view::npos ? "" : text.substr(end + 1);
  }
  return parts;
}

template <typename Integer>
bool ParseNumber(std::string_view text, int base, Integer* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number, base);
  return error == std::errc() && end == text.data() + text.size();
}

// Parses "name=5".
bool ParseExtent(std::string_view text, std::string_view name, int64_t* extent) {
  return text.size() > name.size() && text.starts_with(name) && text[name.size()] == '=' &&
         ParseNumber(text.substr(name.size() + 1), 10, extent) && *extent > 0;
}

bool ParseKey(std::string_view text, MatmulTuningKey* key) {
  const std::vector<std::string_view> words = Split(text, ' ');
  if (words.size() != 6) return false;
  bool known = false;
  for (const MatmulKind kind :
       {MatmulKind::kForward, MatmulKind::kInputGradient, MatmulKind::kWeightGradient}) {
    if (words[0] != NameOf(kind)) continue;
    key->shape.kind = kind;
    known = true;
  }
  bool has_format = false;
  for (const MatmulShape& format : kFormats) {
    if (words[1] != FormatOf(format)) continue;
    key->shape.bfloat16 = format.bfloat16;
    key->shape.float8 = format.float8;
    has_format = true;
  }
  return known && has_format && ParseExtent(words[2], "rows", &key->shape.rows) &&
         ParseExtent(words[3], "k", &key->shape.k) && ParseExtent(words[4], "n", &key->shape.n) &&
         ParseExtent(words[5], "limit", &key->workspace_limit);
}

bool ParseAlgorithm(std::string_view text, Algorithm* algorithm) {
  const std::vector<std::string_view> words = Split(text, ' ');
  if (words.size() != algorithm->size()) return false;
  for (size_t i = 0; i < words.size(); ++i) {
    if (!ParseNumber(words[i], 16, &(*algorithm)[i])) return false;
  }
  return true;
}

std::string AlgorithmText(const Algorithm& algorithm) {
  return fmt::format("{:x}", fmt::join(algorithm, " "));
}

TuningKind MatmulTuning() {
  return {"matmul", [](std::string_view key, std::string_view value) {
            MatmulTuningKey of{};
            Algorithm algorithm{};
            return ParseKey(key, &of) && ParseAlgorithm(value, &algorithm);
          }};
}

}  // namespace

std::string ShapeText(const MatmulShape& shape) {
  return fmt::format("{} {} rows={} k={} n={}", NameOf(shape.kind), FormatOf(shape), shape.rows,
                     shape.k, shape.n);
}

std::string FormatMatmulTunings(const TuningOwner& owner, const MatmulTunings& tunings) {
  TuningEntries lines;
  for (const auto& [key, algorithm] : tunings)
    lines.emplace(KeyText(key), AlgorithmText(algorithm));
  return FormatTuningEntries(MatmulTuning(), owner, lines);
}

StatusOr<MatmulTunings> ParseMatmulTunings(std::string_view text, const TuningOwner& owner) {
  TROUPE_ASSIGN_OR_RETURN(const TuningEntries lines,
                          ParseTuningEntries(MatmulTuning(), owner, text));
  MatmulTunings tunings;
  for (const auto& [key_text, value] : lines) {
    MatmulTuningKey key{};
    ParseKey(key_text, &key);
    ParseAlgorithm(value, &tunings[key]);
  }
  return tunings;
}

std::string TuningCacheFileName(const TuningOwner& owner) {
  return TuningCacheFileName(MatmulTuning(), owner);
}

MatmulTuningCache::MatmulTuningCache(FileSystem& files, std::string folder, TuningOwner owner)
    : lines_(files, std::move(folder), MatmulTuning(), std::move(owner)) {}

std::optional<Algorithm> MatmulTuningCache::Find(const MatmulTuningKey& key) const {
  const std::optional<std::string> value = lines_.Find(KeyText(key));
  Algorithm algorithm{};
  if (!value || !ParseAlgorithm(*value, &algorithm)) return std::nullopt;
  return algorithm;
}

void MatmulTuningCache::Add(const MatmulTuningKey& key, const Algorithm& algorithm) {
  lines_.Add(KeyText(key), AlgorithmText(algorithm));
}

}  // namespace troupe::kernels::cuda
