// Attention of whole samples by a library of the device (cuDNN), each prepared once for its shape. Our own kernels make it
// where a library has none, or is slower: either is right, so that is no fall-back. Either forward goes with either
// gradient: o and lse mean the same.
#ifndef TROUPE_KERNELS_CUDA_ATTENTION_LIBRARY_H_
#define TROUPE_KERNELS_CUDA_ATTENTION_LIBRARY_H_

#include <compare>
#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"
#include "kernels/arguments.h"
#include "kernels/cuda/device.h"

namespace troupe::kernels::cuda {

// Causal attention within samples, without documents: q, k and v lie beside each other in rows of qkv, c[R,(Q+2G)D], and so
// do their gradients.
struct LibraryAttentionShape {
  bool bfloat16 = false;
  int64_t samples = 0, tokens = 0;                               // R = samples · tokens
  int64_t query_heads = 0, key_value_heads = 0, head_dim = 0;    // Q, G, D
  auto operator<=>(const LibraryAttentionShape&) const = default;

  int64_t rows() const { return samples * tokens; }
  int64_t qkv_width() const { return (query_heads + 2 * key_value_heads) * head_dim; }
};
// "bfloat16 samples=64 tokens=1024 queries=12 keys=12 width=64".
std::string ShapeText(const LibraryAttentionShape& shape);

// The operands of sample `first` and of those behind it; lse is f[R,Q] or, of a gradient, by heads.
AttentionArgs SamplesFrom(int64_t first, const LibraryAttentionShape& shape, AttentionArgs args);
AttentionGradArgs SamplesFrom(int64_t first, const LibraryAttentionShape& shape, AttentionGradArgs args);
// The operands of the first sample's heads of keys and values from `first` on, with their queries'; lse is by heads.
AttentionGradArgs HeadsFrom(int64_t first, const LibraryAttentionShape& shape, AttentionGradArgs args);

// Prepared for one shape; gives the same bits in every run; used by one thread at a time.
template <typename Args>
class LibraryAttentionOf {
 public:
  virtual ~LibraryAttentionOf() = default;
  virtual int64_t workspace_bytes() const = 0;
  // What computes it, for receipts.
  virtual std::string implementation() const = 0;
  // Also during a capture. REQUIRES: addresses of `args`, which are of the shape, aligned to 16; `workspace` to 256.
  virtual Status Enqueue(const Args& args, void* workspace, Stream stream) = 0;
};
using LibraryAttention = LibraryAttentionOf<AttentionArgs>;
// Its lse is by heads, f[samples,Q,T] (LseByHeads of kernels.h).
using LibraryAttentionGrad = LibraryAttentionOf<AttentionGradArgs>;

class AttentionLibrary {
 public:
  virtual ~AttentionLibrary() = default;
  // Null where our own kernels are to make it.
  virtual StatusOr<std::unique_ptr<LibraryAttention>> Prepare(const LibraryAttentionShape& shape) = 0;
  virtual StatusOr<std::unique_ptr<LibraryAttentionGrad>> PrepareGrad(const LibraryAttentionShape& shape) = 0;
};

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_ATTENTION_LIBRARY_H_
