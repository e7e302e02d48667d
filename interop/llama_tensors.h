// The weights of a Llama-style model with Hugging Face's names and shapes.
#ifndef TROUPE_INTEROP_LLAMA_TENSORS_H_
#define TROUPE_INTEROP_LLAMA_TENSORS_H_

#include <string>
#include <vector>

#include "base/status.h"
#include "checkpoint/format/slice.h"
#include "troupe/v1/job.pb.h"

namespace troupe {

// The table of the embedding, and the matrix of a head that has its own.
inline constexpr char kEmbeddingTensor[] = "model.embed_tokens.weight";
inline constexpr char kHeadTensor[] = "lm_head.weight";

struct ModelTensor {
  std::string name;
  Extents shape;
};

// Returns the number of layers. INVALID_ARGUMENT unless the pattern gives each layer an attention
// and an MLP block, which is all that Llama's config.json can express. Pure.
StatusOr<int64_t> LlamaLayers(const v1::ModelSpec& model);

// Returns every tensor once, in the order of the model; a tied head has none. INVALID_ARGUMENT as
// above, or if a size is not between 1 and 2^24. REQUIRES: all keys of the shape are set. Pure.
StatusOr<std::vector<ModelTensor>> LlamaTensors(const v1::ModelSpec& model);

}  // namespace troupe

#endif  // TROUPE_INTEROP_LLAMA_TENSORS_H_
