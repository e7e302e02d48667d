#include "interop/testing.h"

#include <cstring>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/file_system.h"
#include "checkpoint/format/safetensors.h"
#include "interop/hf_config.h"
#include "interop/hf_weights.h"

namespace troupe {

v1::ModelSpec SmallLlama(bool tied) {
  v1::ModelSpec model;
  model.set_pattern("(AD)x2");
  model.set_hidden_size(8);
  model.set_num_attention_heads(4);
  model.set_num_key_value_heads(2);
  model.set_head_dim(4);
  model.set_intermediate_size(12);
  model.set_vocab_size(11);
  model.set_tie_word_embeddings(tied);
  model.set_rope_theta(10000);
  model.set_norm_eps(1e-6);
  model.set_max_position_embeddings(64);
  return model;
}

std::string SmallWeights(const ModelTensor& tensor, NumberFormat format) {
  const int64_t elements = *Elements(tensor.shape);
  std::vector<float> numbers(static_cast<size_t>(elements));
  uint32_t state = 1;
  for (const char c : tensor.name) state = state * 31 + static_cast<unsigned char>(c);
  for (float& number : numbers) {
    state = state * 1664525u + 1013904223u;
    // The mantissa has eight bits.
    number = static_cast<float>(static_cast<int32_t>(state >> 24) - 128) / 64.0f;
  }
  std::string bytes(static_cast<size_t>(elements * BytesOf(format)), '\0');
  TROUPE_CHECK(FromFloat32(format, numbers,
                           std::as_writable_bytes(std::span(bytes.data(), bytes.size()))) == 0);
  return bytes;
}

std::string SafetensorsFile(const std::vector<SafetensorsTensor>& tensors) {
  std::vector<SafetensorsEntry> entries;
  std::map<std::string, const SafetensorsTensor*> of_name;
  for (const SafetensorsTensor& tensor : tensors) {
    entries.push_back({.name = tensor.name, .dtype = tensor.dtype, .shape = tensor.shape});
    of_name[tensor.name] = &tensor;
  }
  auto file = LayOutSafetensors(entries, {{"format", "pt"}}, 8);
  TROUPE_CHECK_OK(file.status());
  for (const SafetensorsEntry& entry : entries) *file += of_name.at(entry.name)->bytes;
  return *file;
}

void WriteSmallLlama(const std::string& directory, bool tied, NumberFormat format, int files) {
  PosixFileSystem file_system;
  TROUPE_CHECK_OK(MakeDirectories(file_system, directory));
  const v1::ModelSpec model = SmallLlama(tied);
  const auto config = HfConfigText(model, format);
  TROUPE_CHECK_OK(config.status());
  WriteText(directory + "/config.json", *config);
  const auto tensors = LlamaTensors(model);
  TROUPE_CHECK_OK(tensors.status());
  std::vector<std::vector<SafetensorsTensor>> of_file(static_cast<size_t>(files));
  nlohmann::json map;
  for (size_t i = 0; i < tensors->size(); ++i) {
    const ModelTensor& tensor = (*tensors)[i];
    const size_t file = i * of_file.size() / tensors->size();
    of_file[file].push_back(
        {tensor.name, std::string(DtypeOf(format)), tensor.shape, SmallWeights(tensor, format)});
    map[tensor.name] = fmt::format("part-{}.safetensors", file);
  }
  if (files == 1) return WriteText(directory + "/model.safetensors", SafetensorsFile(of_file[0]));
  for (size_t i = 0; i < of_file.size(); ++i) {
    WriteText(fmt::format("{}/part-{}.safetensors", directory, i), SafetensorsFile(of_file[i]));
  }
  WriteText(directory + "/model.safetensors.index.json",
            nlohmann::json{{"metadata", nlohmann::json::object()}, {"weight_map", map}}.dump());
}

void WriteText(const std::string& path, const std::string& text) {
  PosixFileSystem files;
  const auto file = files.Create(path, CreateMode::kTruncate);
  TROUPE_CHECK_OK(file.status());
  TROUPE_CHECK_OK((*file)->Append(AsBytes(text)));
}

std::string ReadText(const std::string& path) {
  PosixFileSystem files;
  const auto text = ReadFile(files, path, int64_t{1} << 30, SymbolicLinks::kFollow);
  TROUPE_CHECK_OK(text.status());
  return *text;
}

std::vector<std::string> NamesIn(const std::string& directory) {
  PosixFileSystem files;
  const auto entries = files.List(directory);
  TROUPE_CHECK_OK(entries.status());
  std::vector<std::string> names;
  for (const DirectoryEntry& entry : *entries) names.push_back(entry.name);
  return names;
}

}  // namespace troupe
