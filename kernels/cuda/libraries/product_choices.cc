#include "kernels/cuda/libraries/product_choices.h"

#include <charconv>
#include <utility>
#include <vector>

namespace troupe::kernels::cuda {
namespace {

const char* NameOf(ProductKind kind) {
  switch (kind) {
    case ProductKind::kForward:
      return "forward";
    case ProductKind::kInputGradient:
      return "input_gradient";
    case ProductKind::kWeightGradient:
      return "weight_gradient";
  }
  return "unknown";
}

// The dtype of the operands, as text.
const char* FormatOf(const ProductShape& shape) {
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

constexpr ProductShape kFormats[] = {
    {ProductKind::kForward, false, 0, 0, 0},
    {ProductKind::kForward, true, 0, 0, 0},
    {ProductKind::kForward, true, 0, 0, 0, Float8Scaling::kWhole},
    {ProductKind::kForward, true, 0, 0, 0, Float8Scaling::kBlocks}};

std::string KeyText(const ChoiceKey& key) {
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

bool ParseKey(std::string_view text, ChoiceKey* key) {
  const std::vector<std::string_view> words = Split(text, ' ');
  if (words.size() != 6) return false;
  bool known = false;
  for (const ProductKind kind :
       {ProductKind::kForward, ProductKind::kInputGradient, ProductKind::kWeightGradient}) {
    if (words[0] != NameOf(kind)) continue;
    key->shape.kind = kind;
    known = true;
  }
  bool has_format = false;
  for (const ProductShape& format : kFormats) {
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

ChoiceKind Products() {
  return {"product", [](std::string_view key, std::string_view choice) {
            ChoiceKey of{};
            Algorithm algorithm{};
            return ParseKey(key, &of) && ParseAlgorithm(choice, &algorithm);
          }};
}

}  // namespace

std::string ShapeText(const ProductShape& shape) {
  return fmt::format("{} {} rows={} k={} n={}", NameOf(shape.kind), FormatOf(shape), shape.rows,
                     shape.k, shape.n);
}

std::string FormatChoices(const ChoicesOwner& owner, const ProductChoices& choices) {
  ChoiceLines lines;
  for (const auto& [key, algorithm] : choices)
    lines.emplace(KeyText(key), AlgorithmText(algorithm));
  return FormatLines(Products(), owner, lines);
}

StatusOr<ProductChoices> ParseChoices(std::string_view text, const ChoicesOwner& owner) {
  TROUPE_ASSIGN_OR_RETURN(const ChoiceLines lines, ParseLines(Products(), owner, text));
  ProductChoices choices;
  for (const auto& [key_text, choice] : lines) {
    ChoiceKey key{};
    ParseKey(key_text, &key);
    ParseAlgorithm(choice, &choices[key]);
  }
  return choices;
}

std::string ChoicesFileName(const ChoicesOwner& owner) {
  return ChoicesFileName(Products(), owner);
}

ChoicesFile::ChoicesFile(FileSystem& files, std::string folder, ChoicesOwner owner)
    : lines_(files, std::move(folder), Products(), std::move(owner)) {}

std::optional<Algorithm> ChoicesFile::Find(const ChoiceKey& key) const {
  const std::optional<std::string> choice = lines_.Find(KeyText(key));
  Algorithm algorithm{};
  if (!choice || !ParseAlgorithm(*choice, &algorithm)) return std::nullopt;
  return algorithm;
}

void ChoicesFile::Add(const ChoiceKey& key, const Algorithm& algorithm) {
  lines_.Add(KeyText(key), AlgorithmText(algorithm));
}

}  // namespace troupe::kernels::cuda
