// Imports a Hugging Face directory as a checkpoint from which any job of this model can start.
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

// Reads config.json and the headers of the weights, and compares a separate head of a model with
// tied embeddings. Errors: as ReadHfConfig and HfWeights.
StatusOr<HfModel> OpenHfModel(FileSystem& files, const std::string& directory);

// Writes the configuration of model.from into the other keys of `model`; no effect if `from` is not
// set. INVALID_ARGUMENT names a key that is set to a different value, or states the error of
// OpenHfModel; its message begins with the key, "model.hidden_size" or "model.from".
Status InlineHfModel(FileSystem& files, v1::ModelSpec* model);

struct ImportOptions {
  // The largest size of a shard, and of the memory that the import uses, or one row of a tensor if
  // that is larger.
  int64_t shard_bytes_max = int64_t{1} << 30;
};

struct ImportResult {
  v1::ModelSpec model;
  int64_t tensors = 0;
  int64_t bytes = 0;   // total of all files
  std::string digest;  // digest of the manifest
};

// Writes the weights of `directory` to the new or empty directory `path` as float32, which
// represents every supported format exactly, with a weights_only manifest that records the original
// format. Durable on return; the manifest is written last. After an error the files and directories
// that the call created are removed, unless others have put something into such a directory.
// ALREADY_EXISTS if `path` exists and is not empty, or gets a file of the same name meanwhile.
StatusOr<ImportResult> ImportHfModel(FileSystem& files, const std::string& directory,
                                     const std::string& path, const ImportOptions& options = {});

}  // namespace troupe

#endif  // TROUPE_INTEROP_IMPORT_H_
