#include "kernels/cuda/product_choices.h"

#include <unistd.h>

#include <cctype>
#include <charconv>
#include <chrono>
#include <utility>
#include <vector>

#include "base/log.h"

namespace troupe::kernels::cuda {
namespace {

constexpr std::string_view kTitle = "troupe product choices 1";
constexpr int64_t kMaxFileBytes = int64_t{16} << 20;

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

// Of the factors.
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

constexpr ProductShape kFormats[] = {{ProductKind::kForward, false, 0, 0, 0},
                                     {ProductKind::kForward, true, 0, 0, 0},
                                     {ProductKind::kForward, true, 0, 0, 0, Float8Scaling::kWhole},
                                     {ProductKind::kForward, true, 0, 0, 0, Float8Scaling::kBlocks}};

std::string KeyText(const ChoiceKey& key) {
  return fmt::format("{} limit={}", ShapeText(key.shape), key.workspace_limit);
}

std::string HeaderText(const ChoicesOwner& owner) {
  return fmt::format("{}\ndevice {}\nlibrary {}\n", kTitle, owner.device, owner.library);
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

// "name=5".
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
  return known && has_format &&
         ParseExtent(words[2], "rows", &key->shape.rows) && ParseExtent(words[3], "k", &key->shape.k) &&
         ParseExtent(words[4], "n", &key->shape.n) && ParseExtent(words[5], "limit", &key->workspace_limit);
}

bool ParseAlgorithm(std::string_view text, Algorithm* algorithm) {
  const std::vector<std::string_view> words = Split(text, ' ');
  if (words.size() != algorithm->size()) return false;
  for (size_t i = 0; i < words.size(); ++i) {
    if (!ParseNumber(words[i], 16, &(*algorithm)[i])) return false;
  }
  return true;
}

}  // namespace

std::string ShapeText(const ProductShape& shape) {
  return fmt::format("{} {} rows={} k={} n={}", NameOf(shape.kind), FormatOf(shape),
                     shape.rows, shape.k, shape.n);
}

std::string FormatChoices(const ChoicesOwner& owner, const ProductChoices& choices) {
  std::string text = HeaderText(owner);
  for (const auto& [key, algorithm] : choices) {
    text += fmt::format("{}: {:x}\n", KeyText(key), fmt::join(algorithm, " "));
  }
  return text;
}

StatusOr<ProductChoices> ParseChoices(std::string_view text, const ChoicesOwner& owner) {
  const std::string header = HeaderText(owner);
  if (!text.starts_with(header)) {
    if (!text.starts_with(kTitle)) return InvalidArgument("line 1 is not \"{}\"", kTitle);
    return FailedPrecondition("it is of another device or library than {} with {}", owner.device, owner.library);
  }
  // A line that was cut short could still read as a choice.
  if (!text.ends_with('\n')) return InvalidArgument("the last line has no end");
  ProductChoices choices;
  int number = 3;
  for (const std::string_view line : Split(text.substr(header.size()), '\n')) {
    ++number;
    const size_t colon = line.find(": ");
    ChoiceKey key{};
    Algorithm algorithm{};
    if (colon == std::string_view::npos || !ParseKey(line.substr(0, colon), &key) ||
        !ParseAlgorithm(line.substr(colon + 2), &algorithm)) {
      return InvalidArgument("line {} is no choice", number);
    }
    if (!choices.emplace(key, algorithm).second) {
      return InvalidArgument("line {} chooses once more for its shape", number);
    }
  }
  return choices;
}

std::string ChoicesFileName(const ChoicesOwner& owner) {
  std::string device;
  for (const char c : owner.device) {
    device += std::isalnum(static_cast<unsigned char>(c))
                  ? static_cast<char>(std::tolower(static_cast<unsigned char>(c)))
                  : '-';
  }
  return fmt::format("product-choices-{}-{}.txt", device, owner.library);
}

ChoicesFile::ChoicesFile(FileSystem& files, std::string folder, ChoicesOwner owner)
    : files_(files), folder_(std::move(folder)), owner_(std::move(owner)) {
  Read();
}

void ChoicesFile::Read() {
  if (folder_.empty()) return;
  const std::string path = JoinPath(folder_, ChoicesFileName(owner_));
  const StatusOr<std::string> text = ReadFile(files_, path, kMaxFileBytes, SymbolicLinks::kFollow);
  if (text.status().code() == StatusCode::kNotFound) return;
  StatusOr<ProductChoices> read =
      text.ok() ? ParseChoices(*text, owner_) : StatusOr<ProductChoices>(text.status());
  if (!read.ok()) {
    LogWarning("cuda", "{} is not used and will be written anew: {}", path, ToString(read.status()));
    return;
  }
  // What this process has found by itself goes on to hold for it.
  choices_.merge(*read);
}

std::optional<Algorithm> ChoicesFile::Find(const ChoiceKey& key) {
  const auto found = choices_.find(key);
  if (found == choices_.end()) return std::nullopt;
  return found->second;
}

void ChoicesFile::Add(const ChoiceKey& key, const Algorithm& algorithm) {
  choices_[key] = algorithm;
  if (folder_.empty()) return;
  Read();  // what others have added
  if (const Status written = Write(); !written.ok()) {
    LogWarning("cuda", "a choice of products is not kept: {}", ToString(written));
  }
}

Status ChoicesFile::Write() {
  TROUPE_RETURN_IF_ERROR(MakeDirectories(files_, folder_));
  const std::string path = JoinPath(folder_, ChoicesFileName(owner_));
  // Another process, of another host perhaps, may be writing its own.
  const std::string written = fmt::format("{}.{}-{}", path, getpid(),
                                          std::chrono::steady_clock::now().time_since_epoch().count());
  TROUPE_ASSIGN_OR_RETURN(const auto file, files_.Create(written, CreateMode::kExclusive));
  Status status = file->Append(AsBytes(FormatChoices(owner_, choices_)));
  if (status.ok()) status = file->Sync();
  if (status.ok()) status = file->Close();
  if (status.ok()) status = files_.Rename(written, path);
  if (!status.ok()) files_.Remove(written).IgnoreError();
  return status;
}

}  // namespace troupe::kernels::cuda
