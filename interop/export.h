// A checkpoint, of any layout, as a Hugging Face directory that transformers loads.
#ifndef TROUPE_INTEROP_EXPORT_H_
#define TROUPE_INTEROP_EXPORT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "base/file_system.h"
#include "base/status.h"
#include "interop/number_format.h"

namespace troupe {

struct ExportOptions {
  // Absent: the job's model.export_dtype, which an import sets to its own.
  std::optional<NumberFormat> format;
  // The tensors of one file have at most this together, or it holds one tensor alone.
  int64_t file_bytes_max = int64_t{5} << 30;
  // Float32 memory that is filled from the checkpoint at a time, or one row of a tensor.
  int64_t memory_bytes_max = int64_t{256} << 20;
};

struct ExportResult {
  NumberFormat format = NumberFormat::kFloat32;
  int64_t tensors = 0;
  int64_t files = 0;
  int64_t bytes = 0;  // of the tensors
};

// Reads the weights of the checkpoint in `path`, each block verified, and writes config.json and
// model.safetensors, or several files with their index, to the new directory `directory`; a tied
// head is left out. Durable on return; what an error leaves is removed.
//
// INVALID_ARGUMENT where the manifest says no model or one that Llama's config.json cannot,
// OUT_OF_RANGE naming the tensor where a weight does not fit the format, ALREADY_EXISTS where
// `directory` is there and not empty, else errors of ReadManifest and LoadSlices.
StatusOr<ExportResult> ExportHfModel(FileSystem& files, const std::string& path,
                                     const std::string& directory,
                                     const ExportOptions& options = {});

}  // namespace troupe

#endif  // TROUPE_INTEROP_EXPORT_H_
