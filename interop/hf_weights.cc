#include "interop/hf_weights.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "base/check.h"
#include "base/text_file.h"
#include "checkpoint/format/digest.h"
#include "checkpoint/format/safetensors.h"
#include "checkpoint/read/reshard.h"

namespace troupe {
namespace {

constexpr int64_t kIndexBytesMax = int64_t{256} << 20;
constexpr int64_t kReadBytes = int64_t{1} << 20;  // bytes per conversion
constexpr size_t kNamesInErrors = 4;
constexpr int64_t kIdentityBlocks = 64, kIdentityBlockBytes = 4096;

bool IsPlainFileName(const std::string& name) {
  if (name.empty() || name.size() > 255 || name.front() == '.') return false;
  return std::all_of(name.begin(), name.end(),
                     [](char c) { return c > 0x20 && c < 0x7F && c != '/' && c != '\\'; });
}

// Returns "a, b and 3 more".
std::string NamesText(const std::vector<std::string>& names) {
  const size_t count = std::min(names.size(), kNamesInErrors);
  std::string text = fmt::format("{}", fmt::join(names.begin(), names.begin() + count, ", "));
  if (names.size() > count) text += fmt::format(" and {} more", names.size() - count);
  return text;
}

// Returns the file of each tensor that an index names.
StatusOr<std::map<std::string, std::string>> ParseIndex(std::string_view text) {
  const auto index = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!index.is_object()) return InvalidArgument("it is not a JSON object");
  const auto map = index.find("weight_map");
  if (map == index.end() || !map->is_object() || map->empty()) {
    return InvalidArgument("weight_map is absent or names no tensor");
  }
  std::map<std::string, std::string> file_of_tensor;
  for (const auto& [tensor, file] : map->items()) {
    if (!file.is_string() || !IsPlainFileName(file.get<std::string>())) {
      return InvalidArgument("weight_map names a file for tensor {} that is not a plain file name",
                             tensor.substr(0, 128));
    }
    file_of_tensor[tensor] = file.get<std::string>();
  }
  return file_of_tensor;
}

// "xxh128:" and the digest of a file of at most kIdentityBlocks blocks; else "xxh128/N:" and that
// of the N blocks that begin at `begins`, each moved into the file, and of the last block.
StatusOr<std::string> DigestOfBlocks(const ReadableFile& file, std::vector<int64_t> begins) {
  const int64_t size = file.size();
  if (size <= kIdentityBlocks * kIdentityBlockBytes) {
    std::vector<std::byte> bytes(static_cast<size_t>(size));
    TROUPE_RETURN_IF_ERROR(file.ReadAt(0, bytes));
    return Xxh128Of(bytes);
  }
  begins.push_back(size);
  for (int64_t& begin : begins) begin = std::clamp<int64_t>(begin, 0, size - kIdentityBlockBytes);
  std::ranges::sort(begins);
  begins.erase(std::unique(begins.begin(), begins.end()), begins.end());
  std::vector<std::byte> bytes(begins.size() * static_cast<size_t>(kIdentityBlockBytes));
  std::span<std::byte> left = bytes;
  for (const int64_t begin : begins) {
    TROUPE_RETURN_IF_ERROR(file.ReadAt(begin, left.first(kIdentityBlockBytes)));
    left = left.subspan(kIdentityBlockBytes);
  }
  std::string digest = Xxh128Of(bytes);
  return digest.insert(digest.find(':'), fmt::format("/{}", begins.size()));
}

bool IsLeftAside(const std::string& name, bool tied) {
  return name.ends_with(".rotary_emb.inv_freq") || (tied && name == kHeadTensor);
}

}  // namespace

Status HfWeights::Add(FileSystem& files, const std::string& directory, const std::string& name) {
  OpenFile open{.path = JoinPath(directory, name), .file = nullptr};
  TROUPE_ASSIGN_OR_RETURN(open.file, files.Open(open.path, SymbolicLinks::kFollow));
  const auto header = ReadSafetensorsHeader(*open.file);
  if (!header.ok()) return Annotate(header.status(), open.path);
  for (const SafetensorsEntry& entry : header->entries) {
    const Tensor tensor{.file = files_.size(),
                        .dtype = entry.dtype,
                        .shape = entry.shape,
                        .offset = header->buffer_offset + entry.begin,
                        .end = header->buffer_offset + entry.end};
    const auto [there, added] = tensors_.emplace(entry.name, tensor);
    if (!added) {
      return InvalidArgument("{}: tensor {} is also in {}", open.path, entry.name.substr(0, 128),
                             files_[there->second.file].path);
    }
  }
  files_.push_back(std::move(open));
  return OkStatus();
}

StatusOr<HfWeights> HfWeights::Open(FileSystem& files, const std::string& directory) {
  HfWeights weights;
  weights.directory_ = directory;
  const auto single = files.Stat(JoinPath(directory, kHfWeightsFileName), SymbolicLinks::kFollow);
  if (single.ok()) {
    TROUPE_RETURN_IF_ERROR(weights.Add(files, directory, kHfWeightsFileName));
    return weights;
  }
  if (single.status().code() != StatusCode::kNotFound) return single.status();
  const std::string path = JoinPath(directory, kHfIndexFileName);
  const auto text = ReadFile(files, path, kIndexBytesMax, SymbolicLinks::kFollow);
  if (text.status().code() == StatusCode::kNotFound) {
    return NotFound("{}: has neither {} nor {}", directory, kHfWeightsFileName, kHfIndexFileName);
  }
  TROUPE_RETURN_IF_ERROR(text.status());
  if (IsGitLfsPointer(*text)) return Annotate(GitLfsPointerFault(), path);
  const auto file_of_tensor = ParseIndex(*text);
  if (!file_of_tensor.ok()) return Annotate(file_of_tensor.status(), path);
  std::set<std::string> names;
  for (const auto& [tensor, file] : *file_of_tensor) names.insert(file);
  for (const std::string& name : names) {
    TROUPE_RETURN_IF_ERROR(weights.Add(files, directory, name));
  }
  for (const auto& [name, file] : *file_of_tensor) {
    const auto found = weights.tensors_.find(name);
    if (found == weights.tensors_.end() ||
        weights.files_[found->second.file].path != JoinPath(directory, file)) {
      return InvalidArgument("{}: tensor {} is not in {}", path, name.substr(0, 128), file);
    }
  }
  return weights;
}

StatusOr<google::protobuf::RepeatedPtrField<v1::DataFileIdentity>> HfWeights::Identity() const {
  std::vector<std::vector<int64_t>> begins(files_.size());
  for (size_t i = 0; i < files_.size(); ++i) {
    for (int64_t block = 0; block < kIdentityBlocks; ++block)
      begins[i].push_back(files_[i].file->size() / kIdentityBlocks * block);
  }
  for (const auto& [name, tensor] : tensors_) {
    begins[tensor.file].push_back(tensor.offset);
    begins[tensor.file].push_back(tensor.end - kIdentityBlockBytes);
  }
  google::protobuf::RepeatedPtrField<v1::DataFileIdentity> identity;
  for (size_t i = 0; i < files_.size(); ++i) {
    const auto& [path, open] = files_[i];
    v1::DataFileIdentity& file = *identity.Add();
    file.set_name(path.substr(path.rfind('/') + 1));
    file.set_bytes(open->size());
    auto digest = DigestOfBlocks(*open, std::move(begins[i]));
    if (!digest.ok()) return Annotate(digest.status(), path);
    file.set_digest(*std::move(digest));
  }
  return identity;
}

Status HfWeights::Check(std::span<const ModelTensor> tensors) const {
  std::vector<std::string> missing, unknown;
  std::set<std::string> wanted;
  bool tied = true;
  const Tensor* first = nullptr;
  for (const ModelTensor& tensor : tensors) {
    wanted.insert(tensor.name);
    tied = tied && tensor.name != kHeadTensor;
    const auto found = tensors_.find(tensor.name);
    if (found == tensors_.end()) {
      missing.push_back(tensor.name);
      continue;
    }
    const Tensor& stored = found->second;
    if (stored.shape != tensor.shape) {
      return InvalidArgument("{}: tensor {} is {}, but config.json requires {}",
                             files_[stored.file].path, tensor.name, ToString(stored.shape),
                             ToString(tensor.shape));
    }
    if (const auto format = FormatOfDtype(stored.dtype); !format.ok()) {
      return Annotate(format.status(),
                      fmt::format("{}: tensor {}", files_[stored.file].path, tensor.name));
    }
    if (first == nullptr) first = &stored;
    if (stored.dtype != first->dtype) {
      return InvalidArgument("{}: tensor {} is {} but others are {}: all must have one dtype",
                             files_[stored.file].path, tensor.name, stored.dtype, first->dtype);
    }
  }
  for (const auto& [name, stored] : tensors_) {
    if (!wanted.contains(name) && !IsLeftAside(name, tied)) unknown.push_back(name);
  }
  if (!missing.empty()) {
    return InvalidArgument("{}: the model has no {}", directory_, NamesText(missing));
  }
  if (!unknown.empty()) {
    return InvalidArgument("{}: a Llama model of this shape does not have {}", directory_,
                           NamesText(unknown));
  }
  return OkStatus();
}

Status HfWeights::CheckTiedHead(const Box& box) const {
  const auto stored = tensors_.find(kHeadTensor);
  if (stored == tensors_.end()) return OkStatus();
  const Tensor& head = stored->second;
  const auto differs = [&](const std::string& how) {
    return InvalidArgument(
        "{}: {} {}, but config.json has tie_word_embeddings true: state false to train both, or "
        "remove the tensor",
        files_[head.file].path, kHeadTensor, how);
  };
  const Extents& shape = tensors_.at(kEmbeddingTensor).shape;
  if (head.shape != shape) {
    return differs(
        fmt::format("is {} and {} is {}", ToString(head.shape), kEmbeddingTensor, ToString(shape)));
  }
  const int64_t row_bytes = std::max<int64_t>(box.shape[1], 1) * int64_t{sizeof(float)};
  const int64_t most_rows = std::max<int64_t>(kReadBytes / row_bytes, 1);
  std::vector<float> of_head, of_table;
  Box part = box;
  for (int64_t row = 0; row < box.shape[0]; row += part.shape[0]) {
    part.offset[0] = box.offset[0] + row;
    part.shape[0] = std::min(most_rows, box.shape[0] - row);
    of_head.resize(static_cast<size_t>(part.shape[0] * box.shape[1]));
    of_table.resize(of_head.size());
    TROUPE_RETURN_IF_ERROR(Read(kHeadTensor, shape, part, of_head));
    TROUPE_RETURN_IF_ERROR(Read(kEmbeddingTensor, shape, part, of_table));
    if (std::memcmp(of_head.data(), of_table.data(), of_head.size() * sizeof(float)) != 0)
      return differs(fmt::format("has other numbers than {}", kEmbeddingTensor));
  }
  return OkStatus();
}

NumberFormat HfWeights::format() const {
  const auto any = tensors_.find("model.norm.weight");
  TROUPE_CHECK(any != tensors_.end());
  const auto format = FormatOfDtype(any->second.dtype);
  TROUPE_CHECK(format.ok());
  return *format;
}

Status HfWeights::Read(const std::string& name, const Extents& shape, const Box& box,
                       std::span<float> numbers) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) return NotFound("{}: has no tensor {}", directory_, name);
  const Tensor& tensor = found->second;
  const OpenFile& file = files_[tensor.file];
  if (tensor.shape != shape) {
    return InvalidArgument("{}: tensor {} is {}, not {}", file.path, name, ToString(tensor.shape),
                           ToString(shape));
  }
  const auto format = FormatOfDtype(tensor.dtype);
  if (!format.ok()) {
    return Annotate(format.status(), fmt::format("{}: tensor {}", file.path, name));
  }
  if (numbers.empty()) return OkStatus();
  const int64_t item_bytes = BytesOf(*format);
  const Box whole{.offset = Extents(shape.size(), 0), .shape = shape};
  std::vector<std::byte> bytes;
  // Offsets of both sides are in elements here.
  return ForEachRun(box, whole, box, 1, [&](int64_t source, int64_t destination, int64_t count) {
    for (int64_t done = 0; done < count;) {
      const int64_t part = std::min(count - done, kReadBytes / item_bytes);
      bytes.resize(static_cast<size_t>(part * item_bytes));
      TROUPE_RETURN_IF_ERROR(
          file.file->ReadAt(tensor.offset + (source + done) * item_bytes, bytes));
      ToFloat32(
          *format, bytes,
          numbers.subspan(static_cast<size_t>(destination + done), static_cast<size_t>(part)));
      done += part;
    }
    return OkStatus();
  });
}

}  // namespace troupe
