// Small Hugging Face directories for tests, with weights that every format represents exactly.
#ifndef TROUPE_INTEROP_TESTING_H_
#define TROUPE_INTEROP_TESTING_H_

#include <map>
#include <string>
#include <vector>

#include "interop/llama_tensors.h"
#include "interop/number_format.h"
#include "troupe/v1/job.pb.h"

namespace troupe {

// Returns a model with hidden size 8, two layers, 4 heads of size 4 over 2 key-value heads and
// vocabulary 11.
v1::ModelSpec SmallLlama(bool tied);

// Returns the bytes of tensor `name` in the directories below; they differ for every name and
// index.
std::string SmallWeights(const ModelTensor& tensor, NumberFormat format);

struct SafetensorsTensor {
  std::string name, dtype;
  Extents shape;
  std::string bytes;
};
// Returns the bytes of a file with these tensors.
std::string SafetensorsFile(const std::vector<SafetensorsTensor>& tensors);

// Writes a directory of SmallLlama(tied) with its weights in `files` files.
void WriteSmallLlama(const std::string& directory, bool tied, NumberFormat format, int files = 1);

void WriteText(const std::string& path, const std::string& text);
std::string ReadText(const std::string& path);
// Returns the names of the entries of a directory, sorted.
std::vector<std::string> NamesIn(const std::string& directory);

}  // namespace troupe

#endif  // TROUPE_INTEROP_TESTING_H_
