#include "kernels/cuda/attention_library.h"

namespace troupe::kernels::cuda {

std::string ShapeText(const LibraryAttentionShape& shape) {
  return fmt::format("{} samples={} tokens={} queries={} keys={} width={}", shape.bfloat16 ? "bfloat16" : "float32",
                     shape.samples, shape.tokens, shape.query_heads, shape.key_value_heads, shape.head_dim);
}

}  // namespace troupe::kernels::cuda
