// Attention over whole samples by a device library (cuDNN), prepared once per shape. Our own
// kernels compute it if a library does not support the shape or is slower; both are fully
// supported, so neither is a fall-back. Forward and gradient of different implementations may be
// combined, because o and lse have the same meaning.
#ifndef TROUPE_KERNELS_CUDA_RUNTIME_ATTENTION_LIBRARY_H_
#define TROUPE_KERNELS_CUDA_RUNTIME_ATTENTION_LIBRARY_H_

#include <compare>
#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"
#include "kernels/backend/arguments.h"
#include "kernels/cuda/runtime/device.h"

namespace troupe::kernels::cuda {

// Causal attention within samples, without documents. q, k and v are adjacent columns of the rows
// of qkv, c[R,(Q+2G)D]; their gradients have the same layout.
struct LibraryAttentionShape {
  bool bfloat16 = false;
  int64_t samples = 0, tokens = 0;                             // R = samples · tokens
  int64_t query_heads = 0, key_value_heads = 0, head_dim = 0;  // Q, G, D
  auto operator<=>(const LibraryAttentionShape&) const = default;

  int64_t rows() const { return samples * tokens; }
  int64_t qkv_width() const { return (query_heads + 2 * key_value_heads) * head_dim; }
};
// "bfloat16 samples=64 tokens=1024 queries=12 keys=12 width=64".
std::string ShapeText(const LibraryAttentionShape& shape);

// The operands from sample `first` on. lse is f[R,Q], or ordered by heads for a gradient.
AttentionArgs SamplesFrom(int64_t first, const LibraryAttentionShape& shape, AttentionArgs args);
AttentionGradArgs SamplesFrom(int64_t first, const LibraryAttentionShape& shape,
                              AttentionGradArgs args);
// The operands of the first sample's key-value heads from `first` on, with the query heads of their
// groups. lse is ordered by heads.
AttentionGradArgs HeadsFrom(int64_t first, const LibraryAttentionShape& shape,
                            AttentionGradArgs args);

// Attention prepared for one shape. Every run gives the same bits. One thread at a time may use it.
template <typename Args>
class LibraryAttentionOf {
 public:
  virtual ~LibraryAttentionOf() = default;
  virtual int64_t workspace_bytes() const = 0;
  // The name of the implementation, for receipts.
  virtual std::string implementation() const = 0;
  // Also allowed during a capture. REQUIRES: `args` has the prepared shape, its addresses are
  // aligned to 16, and `workspace` to 256.
  virtual Status Enqueue(const Args& args, void* workspace, Stream stream) = 0;
};
using LibraryAttention = LibraryAttentionOf<AttentionArgs>;
// Its lse is ordered by heads, f[samples,Q,T] (LseByHeads of kernels.h).
using LibraryAttentionGrad = LibraryAttentionOf<AttentionGradArgs>;

class AttentionLibrary {
 public:
  virtual ~AttentionLibrary() = default;
  // Returns null if our own kernels are to compute it.
  virtual StatusOr<std::unique_ptr<LibraryAttention>> Prepare(
      const LibraryAttentionShape& shape) = 0;
  virtual StatusOr<std::unique_ptr<LibraryAttentionGrad>> PrepareGrad(
      const LibraryAttentionShape& shape) = 0;
};

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_RUNTIME_ATTENTION_LIBRARY_H_
