#include "interop/export.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/durable_write.h"
#include "checkpoint/format/manifest.h"
#include "checkpoint/format/safetensors.h"
#include "checkpoint/read/shard_reader.h"
#include "interop/base_weights.h"
#include "interop/directory.h"
#include "interop/hf_config.h"
#include "interop/hf_weights.h"
#include "interop/llama_tensors.h"
#include "interop/recording_file_system.h"

namespace troupe {
namespace {

constexpr int64_t kFloatBytes = 4;
// The alignment to which safetensors' own writer pads its header, for readers that map these files.
constexpr int64_t kHeaderAlignment = 8;

StatusOr<v1::ModelSpec> ModelOf(const v1::CheckpointManifest& manifest) {
  if (manifest.job_spec_json().empty()) {
    return InvalidArgument("its manifest does not describe its model");
  }
  v1::JobSpec spec;
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;  // the spec may be from a later version
  const auto status =
      google::protobuf::util::JsonStringToMessage(manifest.job_spec_json(), &spec, options);
  if (!status.ok()) return InvalidArgument("job_spec_json: {}", status.ToString());
  if (!spec.model().has_max_position_embeddings()) {
    spec.mutable_model()->set_max_position_embeddings(
        std::max<int64_t>(1, spec.training().sequence_length()));
  }
  return spec.model();
}

// Returns the files of the tokenizer that the user asked for, else those of model.from. If these
// cannot be found or not be copied, `reason` states why.
StatusOr<TokenizerFiles> ChooseTokenizer(FileSystem& files, const v1::ModelSpec& model,
                                         const ExportOptions& options, std::string* reason) {
  const bool asked = options.tokenizer_directory.has_value();
  if (!asked && !model.has_from()) {
    *reason = "the checkpoint states no model.from";
    return TokenizerFiles();
  }
  const std::string& directory = asked ? *options.tokenizer_directory : model.from();
  if (const auto info = files.Stat(directory, SymbolicLinks::kFollow); !asked && !info.ok()) {
    *reason = fmt::format("model.from cannot be read on this host: {}", Message(info.status()));
    return TokenizerFiles();
  }
  auto found = FindTokenizerFiles(files, directory);
  if (!found.ok() && !asked) {
    *reason =
        fmt::format("the tokenizer of model.from cannot be copied: {}", Message(found.status()));
    return TokenizerFiles();
  }
  if (!found.ok() || found->has_tokenizer) return found;
  *reason = fmt::format("{} has none of {}", directory, TokenizerFileNames());
  if (asked) return InvalidArgument("{}", *reason);
  return found;
}

// Rows [first_row, first_row + rows) of a tensor.
struct RowRange {
  const ModelTensor* tensor;
  int64_t first_row;
  int64_t rows;

  GlobalSlice Slice() const {
    Box box{.offset = Extents(tensor->shape.size(), 0), .shape = tensor->shape};
    box.offset[0] = first_row;
    box.shape[0] = rows;
    return {tensor->name, "F32", tensor->shape, std::move(box)};
  }
  int64_t elements() const { return *Elements(tensor->shape) / tensor->shape[0] * rows; }
};

// Splits all rows of `tensors`, in order, into batches of at most `bytes_max` bytes of float32.
std::vector<std::vector<RowRange>> CutIntoBatches(const std::vector<const ModelTensor*>& tensors,
                                                  int64_t bytes_max) {
  std::vector<std::vector<RowRange>> batches(1);
  int64_t room = bytes_max;
  for (const ModelTensor* tensor : tensors) {
    const int64_t rows = tensor->shape[0];
    const int64_t row_bytes = *Elements(tensor->shape) / rows * kFloatBytes;
    for (int64_t row = 0; row < rows;) {
      if (room < row_bytes && !batches.back().empty()) {
        batches.emplace_back();
        room = bytes_max;
      }
      const int64_t count = std::clamp<int64_t>(room / row_bytes, 1, rows - row);
      batches.back().push_back({tensor, row, count});
      row += count;
      room -= count * row_bytes;
    }
  }
  return batches;
}

class Exporter {
 public:
  Exporter(FileSystem& files, const BaseWeights& weights, std::string directory,
           const ExportOptions& options, NumberFormat format)
      : files_(files),
        weights_(weights),
        directory_(std::move(directory)),
        options_(options),
        format_(format) {}

  // Writes one safetensors file with `tensors`, in the order of safetensors' writer.
  Status WriteFile(const std::string& name, const std::vector<const ModelTensor*>& tensors) {
    std::vector<SafetensorsEntry> entries;
    std::map<std::string, const ModelTensor*> tensor_of_name;
    for (const ModelTensor* tensor : tensors) {
      entries.push_back(
          {.name = tensor->name, .dtype = std::string(DtypeOf(format_)), .shape = tensor->shape});
      tensor_of_name[tensor->name] = tensor;
    }
    TROUPE_ASSIGN_OR_RETURN(const std::string head,
                            LayOutSafetensors(entries, {{"format", "pt"}}, kHeaderAlignment));
    std::vector<const ModelTensor*> order;
    for (const SafetensorsEntry& entry : entries) order.push_back(tensor_of_name[entry.name]);
    const std::string path = JoinPath(directory_, name);
    TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file,
                            files_.Create(path, CreateMode::kExclusive));
    TROUPE_RETURN_IF_ERROR(file->Append(AsBytes(head)));
    for (const auto& batch : CutIntoBatches(order, options_.memory_bytes_max)) {
      TROUPE_RETURN_IF_ERROR(WriteBatch(batch, *file));
    }
    TROUPE_RETURN_IF_ERROR(file->Sync());
    return file->Close();
  }

 private:
  Status WriteBatch(const std::vector<RowRange>& batch, WritableFile& file) {
    int64_t elements = 0;
    for (const RowRange& range : batch) elements += range.elements();
    numbers_.resize(static_cast<size_t>(elements));
    std::vector<LoadTarget> targets;
    std::span<float> left = numbers_;
    for (const RowRange& range : batch) {
      const std::span<float> part = left.first(static_cast<size_t>(range.elements()));
      left = left.subspan(part.size());
      targets.push_back({range.Slice(), std::as_writable_bytes(part)});
    }
    TROUPE_RETURN_IF_ERROR(weights_.Load(targets));
    left = numbers_;
    for (const RowRange& range : batch) {
      const std::span<float> part = left.first(static_cast<size_t>(range.elements()));
      left = left.subspan(part.size());
      bytes_.resize(part.size() * static_cast<size_t>(BytesOf(format_)));
      if (const int64_t overflows = FromFloat32(format_, part, bytes_); overflows > 0) {
        return OutOfRange("tensor {}: {} weights exceed the range of {}", range.tensor->name,
                          overflows, NameOf(format_));
      }
      TROUPE_RETURN_IF_ERROR(file.Append(bytes_));
    }
    return OkStatus();
  }

  FileSystem& files_;
  const BaseWeights& weights_;
  const std::string directory_;
  const ExportOptions& options_;
  const NumberFormat format_;
  std::vector<float> numbers_;
  std::vector<std::byte> bytes_;
};

// Returns the tensors of each file, in the order of the model.
std::vector<std::vector<const ModelTensor*>> CutIntoFiles(const std::vector<ModelTensor>& tensors,
                                                          NumberFormat format, int64_t bytes_max) {
  std::vector<std::vector<const ModelTensor*>> files(1);
  int64_t bytes = 0;
  for (const ModelTensor& tensor : tensors) {
    const int64_t more = *Elements(tensor.shape) * BytesOf(format);
    if (!files.back().empty() && bytes + more > bytes_max) {
      files.emplace_back();
      bytes = 0;
    }
    files.back().push_back(&tensor);
    bytes += more;
  }
  return files;
}

Status WriteModel(FileSystem& files, const std::string& directory, Exporter& exporter,
                  const std::vector<std::vector<const ModelTensor*>>& tensors_of_file,
                  const std::string& config, const ExportResult& result) {
  nlohmann::ordered_json map = nlohmann::ordered_json::object();
  int64_t parameters = 0;
  const size_t count = tensors_of_file.size();
  for (size_t i = 0; i < count; ++i) {
    const std::string name = count == 1
                                 ? kHfWeightsFileName
                                 : fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, count);
    TROUPE_RETURN_IF_ERROR(exporter.WriteFile(name, tensors_of_file[i]));
    for (const ModelTensor* tensor : tensors_of_file[i]) {
      map[tensor->name] = name;
      parameters += *Elements(tensor->shape);
    }
  }
  if (count > 1) {
    const nlohmann::ordered_json index = {
        {"metadata", {{"total_parameters", parameters}, {"total_size", result.bytes}}},
        {"weight_map", std::move(map)}};
    TROUPE_RETURN_IF_ERROR(WriteFileDurably(files, JoinPath(directory, kHfIndexFileName),
                                            AsBytes(index.dump(2) + "\n")));
  }
  return WriteFileDurably(files, JoinPath(directory, kHfConfigFileName), AsBytes(config));
}

}  // namespace

StatusOr<ExportResult> ExportHfModel(FileSystem& files, const std::string& path,
                                     const std::string& directory, const ExportOptions& options) {
  TROUPE_ASSIGN_OR_RETURN(const v1::CheckpointManifest manifest, ReadManifest(files, path, ""));
  const auto model = ModelOf(manifest);
  if (!model.ok()) return Annotate(model.status(), path);
  const auto tensors = LlamaTensors(*model);
  if (!tensors.ok()) return Annotate(tensors.status(), path);
  ExportResult result;
  if (options.format.has_value()) {
    result.format = *options.format;
  } else if (model->has_export_dtype()) {
    TROUPE_ASSIGN_OR_RETURN(result.format, FormatOfName(model->export_dtype()));
  }
  result.tensors = static_cast<int64_t>(tensors->size());
  for (const ModelTensor& tensor : *tensors) {
    result.bytes += *Elements(tensor.shape) * BytesOf(result.format);
  }
  TROUPE_ASSIGN_OR_RETURN(const std::string config, HfConfigText(*model, result.format));
  TROUPE_ASSIGN_OR_RETURN(result.tokenizer,
                          ChooseTokenizer(files, *model, options, &result.no_tokenizer));
  const auto tensors_of_file = CutIntoFiles(*tensors, result.format, options.file_bytes_max);
  result.files = static_cast<int64_t>(tensors_of_file.size());
  RecordingFileSystem recording(files);
  TROUPE_ASSIGN_OR_RETURN(const BaseWeights weights,
                          BaseWeights::Open({files, files}, kBaseCheckpoint, path));
  Exporter exporter(recording, weights, directory, options, result.format);
  Status written = MakeEmptyDirectory(recording, directory);
  if (written.ok()) written = CopyTokenizerFiles(recording, result.tokenizer, directory);
  if (written.ok())
    written = WriteModel(recording, directory, exporter, tensors_of_file, config, result);
  if (!written.ok()) {
    recording.RemoveCreated();
    return written;
  }
  return result;
}

}  // namespace troupe
