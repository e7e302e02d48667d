// The weights of a Hugging Face directory: model.safetensors, or the files that
// model.safetensors.index.json names.
//
// Open parses the headers (checkpoint/format/safetensors refuses hostile ones); data are read slice
// by slice, so that a rank reads only its own part. Symbolic links are followed, because a
// directory in Hugging Face's cache consists of them. Thread-safe once open.
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
#include "checkpoint/format/slice.h"
#include "interop/llama_tensors.h"
#include "interop/number_format.h"
#include "troupe/v1/data.pb.h"

namespace troupe {

inline constexpr char kHfWeightsFileName[] = "model.safetensors";
inline constexpr char kHfIndexFileName[] = "model.safetensors.index.json";

class HfWeights {
 public:
  // NOT_FOUND if neither file exists; INVALID_ARGUMENT names file and tensor for a wrong header, a
  // file name with a path, or an index that does not match its files.
  static StatusOr<HfWeights> Open(FileSystem& files, const std::string& directory);

  // OK if the files contain exactly `tensors`, all in one of the formats of NumberFormat. Otherwise
  // INVALID_ARGUMENT names missing and unexpected tensors and different shapes. Tensors that
  // transformers itself does not load are ignored: rotary tables, and with tied embeddings a
  // separate head, which CheckTiedHead compares.
  Status Check(std::span<const ModelTensor> tensors) const;

  // OK unless the files have a separate head that differs from the embedding's table within `box`:
  // transformers keeps both, so they are not tied. INVALID_ARGUMENT names the file. REQUIRES: Check
  // returned OK for a model with tied embeddings, and `box` lies within the table.
  Status CheckTiedHead(const Box& box) const;

  // Returns the common format of all tensors. REQUIRES: Check returned OK.
  NumberFormat format() const;

  // The name, size and a digest of each file: of the first and last 4 KiB of each tensor and of 64
  // blocks that are spread evenly over the file, or of all of a shorter file. Errors of the file
  // system.
  StatusOr<google::protobuf::RepeatedPtrField<v1::DataFileIdentity>> Identity() const;

  // Fills `numbers`, row-major, with the part `box` of tensor `name`. NOT_FOUND or INVALID_ARGUMENT
  // if there is no such tensor with this shape and a known format; errors of the file system.
  Status Read(const std::string& name, const Extents& shape, const Box& box,
              std::span<float> numbers) const;

 private:
  struct Tensor {
    size_t file = 0;
    std::string dtype;
    Extents shape;
    int64_t offset = 0;  // its data are the bytes [offset, end) of the file
    int64_t end = 0;
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
