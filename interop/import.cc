#include "interop/import.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "checkpoint/format/manifest.h"
#include "checkpoint/write/shard_writer.h"
#include "interop/directory.h"
#include "interop/hf_config.h"
#include "interop/recording_file_system.h"

namespace troupe {
namespace {

// Splits the tensors by rows into shards of at most `bytes_max` bytes.
std::vector<std::vector<GlobalSlice>> CutIntoShards(const std::vector<ModelTensor>& tensors,
                                                    int64_t bytes_max) {
  std::vector<std::vector<GlobalSlice>> shards(1);
  int64_t room = bytes_max;
  for (const ModelTensor& tensor : tensors) {
    const int64_t rows = tensor.shape[0];
    const int64_t row_bytes = *DenseBytes(tensor.shape, "F32") / rows;
    for (int64_t row = 0; row < rows;) {
      if (room < row_bytes && !shards.back().empty()) {
        shards.emplace_back();
        room = bytes_max;
      }
      const int64_t count = std::clamp<int64_t>(room / row_bytes, 1, rows - row);
      Box box{.offset = Extents(tensor.shape.size(), 0), .shape = tensor.shape};
      box.offset[0] = row;
      box.shape[0] = count;
      shards.back().push_back({tensor.name, "F32", tensor.shape, std::move(box)});
      row += count;
      room -= count * row_bytes;
    }
  }
  return shards;
}

StatusOr<v1::ShardFile> ImportShard(FileSystem& files, const HfWeights& weights,
                                    const std::string& path, int number,
                                    const std::vector<GlobalSlice>& slices) {
  int64_t elements = 0;
  for (const GlobalSlice& slice : slices) elements += *Elements(slice.box.shape);
  std::vector<float> numbers(static_cast<size_t>(elements));
  std::vector<ShardTensor> tensors;
  std::span<float> left = numbers;
  for (const GlobalSlice& slice : slices) {
    const std::span<float> part = left.first(static_cast<size_t>(*Elements(slice.box.shape)));
    left = left.subspan(part.size());
    TROUPE_RETURN_IF_ERROR(weights.Read(slice.name, slice.global_shape, slice.box, part));
    tensors.push_back({slice, std::as_bytes(part)});
  }
  return WriteShard(files, path, number, tensors);
}

StatusOr<std::string> SpecJson(const v1::ModelSpec& model) {
  v1::JobSpec spec;
  *spec.mutable_model() = model;
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  std::string json;
  const auto status = google::protobuf::util::MessageToJsonString(spec, &json, options);
  if (!status.ok()) return Internal("model to JSON: {}", status.ToString());
  return json;
}

StatusOr<ImportResult> WriteImport(FileSystem& files, const HfModel& source,
                                   const std::string& path, const ImportOptions& options) {
  TROUPE_RETURN_IF_ERROR(MakeEmptyDirectory(files, path));
  TROUPE_ASSIGN_OR_RETURN(const std::vector<ModelTensor> tensors, LlamaTensors(source.model));
  v1::CheckpointManifest manifest;
  manifest.set_format_version(kManifestFormatVersion);
  manifest.set_attempt(1);
  manifest.set_weights_only(true);
  manifest.mutable_state()->set_step(0);
  TROUPE_ASSIGN_OR_RETURN(*manifest.mutable_job_spec_json(), SpecJson(source.model));
  int number = 0;
  for (const std::vector<GlobalSlice>& slices : CutIntoShards(tensors, options.shard_bytes_max)) {
    TROUPE_ASSIGN_OR_RETURN(*manifest.add_shards(),
                            ImportShard(files, source.weights, path, number++, slices));
  }
  TROUPE_ASSIGN_OR_RETURN(const WrittenManifest written, WriteManifest(files, path, manifest));
  return ImportResult{.model = source.model,
                      .tensors = static_cast<int64_t>(tensors.size()),
                      .bytes = written.bytes,
                      .digest = written.digest};
}

}  // namespace

StatusOr<HfModel> OpenHfModel(FileSystem& files, const std::string& directory) {
  TROUPE_ASSIGN_OR_RETURN(v1::ModelSpec model, ReadHfConfig(files, directory));
  const auto tensors = LlamaTensors(model);
  if (!tensors.ok()) return Annotate(tensors.status(), directory);
  TROUPE_ASSIGN_OR_RETURN(HfWeights weights, HfWeights::Open(files, directory));
  TROUPE_RETURN_IF_ERROR(weights.Check(*tensors));
  if (model.tie_word_embeddings()) {
    const Extents table = {model.vocab_size(), model.hidden_size()};
    TROUPE_RETURN_IF_ERROR(weights.CheckTiedHead({.offset = {0, 0}, .shape = table}));
  }
  model.set_export_dtype(std::string(NameOf(weights.format())));
  return HfModel{.model = std::move(model), .weights = std::move(weights)};
}

Status InlineHfModel(FileSystem& files, v1::ModelSpec* model) {
  if (!model->has_from()) return OkStatus();
  const auto source = OpenHfModel(files, model->from());
  if (!source.ok()) return InvalidArgument("model.from: {}", Message(source.status()));
  const v1::ModelSpec& stated = source->model;
  const auto* descriptor = v1::ModelSpec::descriptor();
  const auto* reflection = model->GetReflection();
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const auto* field = descriptor->field(i);
    // These keys affect only the form of an export, what is trained, or nothing, of which the plan
    // warns.
    if (field->name().starts_with("export_") || field->name() == "max_position_embeddings" ||
        field->name() == "initializer_range" || field->name() == "trainable")
      continue;
    if (field->name() == "from" || !reflection->HasField(*model, field)) continue;
    const auto only = [&](const v1::ModelSpec& from) {
      v1::ModelSpec one = from;
      for (int other = 0; other < descriptor->field_count(); ++other) {
        if (other != i) reflection->ClearField(&one, descriptor->field(other));
      }
      return one.ShortDebugString();
    };
    if (only(*model) == only(stated)) continue;
    return InvalidArgument("model.{} is stated in addition to model.from: {}, but {} has {}",
                           field->name(), only(*model), model->from(),
                           reflection->HasField(stated, field) ? only(stated) : "none");
  }
  v1::ModelSpec complete = stated;
  complete.MergeFrom(*model);
  *model = std::move(complete);
  return OkStatus();
}

StatusOr<ImportResult> ImportHfModel(FileSystem& files, const std::string& directory,
                                     const std::string& path, const ImportOptions& options) {
  TROUPE_ASSIGN_OR_RETURN(const HfModel source, OpenHfModel(files, directory));
  RecordingFileSystem recording(files);
  StatusOr<ImportResult> result = WriteImport(recording, source, path, options);
  if (!result.ok()) recording.RemoveCreated();
  return result;
}

}  // namespace troupe
