// A Hugging Face directory as a checkpoint that any job of this model can start from.
#ifndef TROUPE_INTEROP_IMPORT_H_
#define TROUPE_INTEROP_IMPORT_H_

#include <cstdint>
#include <string>

#include "base/file_system.h"
#include "base/status.h"
#include "interop/hf_weights.h"
#include "troupe/v1/job.pb.h"

namespace troupe {

struct HfModel {
  v1::ModelSpec model;  // every key of the shape and export_dtype set
  HfWeights weights;    // checked: exactly the model's tensors
};

// Reads config.json and the headers of the weights. Errors of ReadHfConfig and HfWeights.
StatusOr<HfModel> OpenHfModel(FileSystem& files, const std::string& directory);

// Writes the configuration of model.from into the other keys of `model`; nothing where `from` is not
// set. INVALID_ARGUMENT where a key that is set says something else, naming it; errors of
// OpenHfModel.
Status InlineHfModel(FileSystem& files, v1::ModelSpec* model);

struct ImportOptions {
  // A shard and the memory that importing takes have at most this, or one row of a tensor.
  int64_t shard_bytes_max = int64_t{1} << 30;
};

struct ImportResult {
  v1::ModelSpec model;
  int64_t tensors = 0;
  int64_t bytes = 0;   // of all files
  std::string digest;  // of the manifest
};

// Writes the weights of `directory` to the new directory `path` as float32, which holds those of
// every format exactly, with a manifest that says what they were and weights_only. Durable on
// return; before the manifest there is no checkpoint, and what an error leaves is removed.
// ALREADY_EXISTS where `path` is there and not empty.
StatusOr<ImportResult> ImportHfModel(FileSystem& files, const std::string& directory,
                                     const std::string& path, const ImportOptions& options = {});

}  // namespace troupe

#endif  // TROUPE_INTEROP_IMPORT_H_
