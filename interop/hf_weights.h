// The weights of a Hugging Face directory: model.safetensors, or the files that
// model.safetensors.index.json names.
//
// Headers are parsed when it is opened (checkpoint/safetensors refuses hostile ones), data read
// slice by slice, so that a rank reads its own part alone. Symbolic links are followed: a directory
// in Hugging Face's cache consists of them. Thread-safe once open.
#ifndef TROUPE_INTEROP_HF_WEIGHTS_H_
#define TROUPE_INTEROP_HF_WEIGHTS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "base/status.h"
#include "checkpoint/slice.h"
#include "interop/llama_tensors.h"
#include "interop/number_format.h"

namespace troupe {

inline constexpr char kHfWeightsFileName[] = "model.safetensors";
inline constexpr char kHfIndexFileName[] = "model.safetensors.index.json";

class HfWeights {
 public:
  // NOT_FOUND without either file; INVALID_ARGUMENT naming file and tensor for a header that is
  // wrong, a file name that is no plain one, or an index that differs from its files.
  static StatusOr<HfWeights> Open(FileSystem& files, const std::string& directory);

  // INVALID_ARGUMENT naming what is missing, what nobody asked for, and shapes that differ, unless
  // exactly `tensors` are there, all in one of the formats of NumberFormat. Left aside are what
  // transformers itself does not load: rotary tables, and a head of its own beside tied embeddings.
  Status Check(std::span<const ModelTensor> tensors) const;

  // The one format of all tensors. REQUIRES: Check returned OK.
  NumberFormat format() const;

  // Fills `numbers`, row-major, with the part `box` of tensor `name`. NOT_FOUND or INVALID_ARGUMENT
  // where it is not there in this shape and a known format; errors of the file system.
  Status Read(const std::string& name, const Extents& shape, const Box& box,
              std::span<float> numbers) const;

 private:
  struct Tensor {
    size_t file = 0;
    std::string dtype;
    Extents shape;
    int64_t offset = 0;  // of its data in the file
  };
  struct OpenFile {
    std::string path;
    std::unique_ptr<ReadableFile> file;
  };

  HfWeights() = default;
  Status Add(FileSystem& files, const std::string& directory, const std::string& name);

  std::string directory_;
  std::vector<OpenFile> files_;
  std::map<std::string, Tensor> tensors_;
};

}  // namespace troupe

#endif  // TROUPE_INTEROP_HF_WEIGHTS_H_
