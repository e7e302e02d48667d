// Exports a checkpoint, of any layout, to a Hugging Face directory that transformers can load.
#ifndef TROUPE_INTEROP_EXPORT_H_
#define TROUPE_INTEROP_EXPORT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "base/file_system.h"
#include "base/status.h"
#include "interop/number_format.h"
#include "interop/tokenizer_files.h"

namespace troupe {

struct ExportOptions {
  // Absent: the job's model.export_dtype, which an import sets to the dtype of the imported files.
  std::optional<NumberFormat> format;
  // The tensors of one file have at most this many bytes in total, or the file holds a single
  // tensor.
  int64_t file_bytes_max = int64_t{5} << 30;
  // The float32 memory that is filled from the checkpoint at a time, or one row of a tensor if that
  // is larger.
  int64_t memory_bytes_max = int64_t{256} << 20;
  // The directory with the tokenizer. Absent: the job's model.from, if this host has it.
  std::optional<std::string> tokenizer_directory;
};

struct ExportResult {
  NumberFormat format = NumberFormat::kFloat32;
  int64_t tensors = 0;
  int64_t files = 0;
  int64_t bytes = 0;         // total of the tensors
  TokenizerFiles tokenizer;  // the files that were copied
  std::string no_tokenizer;  // the reason why none of them is a tokenizer; empty if one is
};

// Reads the weights of the checkpoint in `path` and, if its job froze parameters, of the model that
// it names as its base, verifies each block, and writes config.json and
// model.safetensors, or several files with their index, to the new or empty directory `directory`.
// A tied head is omitted. The files of the tokenizer are copied unchanged; without
// tokenizer_directory, an export without them is no error if the job states no model.from, or one
// that this host does not have, that has no tokenizer, or for which FindTokenizerFiles has an
// error. Durable on return. After an error the files and directories that the call created are
// removed, unless others have put something into such a directory.
//
// INVALID_ARGUMENT if the manifest states no model, or one that Llama's config.json cannot express,
// and if tokenizer_directory has no tokenizer; errors of FindTokenizerFiles for that directory, and
// of CopyTokenizerFiles; OUT_OF_RANGE names the tensor if a weight does not fit the format;
// ALREADY_EXISTS if `directory` exists and is not empty, or gets a file of the same name meanwhile.
// Other errors: as ReadManifest and LoadSlices.
StatusOr<ExportResult> ExportHfModel(FileSystem& files, const std::string& path,
                                     const std::string& directory,
                                     const ExportOptions& options = {});

}  // namespace troupe

#endif  // TROUPE_INTEROP_EXPORT_H_
