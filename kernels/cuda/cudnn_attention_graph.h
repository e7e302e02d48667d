// One attention as a graph of cuDNN's, made by its front end. Immutable once made.
//
// Tensors are described where they lie: q, k and v in rows of qkv, lse as f[R,Q] where it is made and by heads,
// f[samples,Q,T], where the gradient reads it. Its statistics are max + log(sum) of a row's scores, in the natural logarithm, as
// ours are. The gradient is made by cuDNN's deterministic algorithm, which keeps the gradient of all scores of a call in its
// working memory.
#ifndef TROUPE_KERNELS_CUDA_CUDNN_ATTENTION_GRAPH_H_
#define TROUPE_KERNELS_CUDA_CUDNN_ATTENTION_GRAPH_H_

#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"
#include "kernels/cuda/attention_library.h"

// What cuDNN calls cudnnHandle_t.
struct cudnnContext;

namespace troupe::kernels::cuda {

// What a graph is made for.
struct CudnnTarget {
  cudnnContext* handle = nullptr;
  int capability = 0;  // 90
  int multiprocessors = 0;
  // In place of a handle, cuDNN's text of a device (CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION): the graph is made without
  // the device, and cannot be run.
  std::string device_properties;
};

// What one call of a gradient makes of its shape: so many samples, or of one sample so many heads of keys and values with
// those of their queries. Divisors of all that there are.
struct GradientCall {
  int64_t samples = 1, key_value_heads = 1;
  bool operator==(const GradientCall&) const = default;
};
// As much of `shape` as the limit of working memory allows, at least one head of one sample. Pure.
GradientCall GradientCallOf(const LibraryAttentionShape& shape, int64_t workspace_limit);

class CudnnAttentionGraph {
 public:
  // UNIMPLEMENTED with cuDNN's reason where it has no plan of it. REQUIRES: LoadCudnn succeeded.
  static StatusOr<std::unique_ptr<CudnnAttentionGraph>> MakeForward(const LibraryAttentionShape& shape,
                                                                    const CudnnTarget& target);
  // Of what `call` has of `shape`, in whose rows it lies.
  static StatusOr<std::unique_ptr<CudnnAttentionGraph>> MakeGradient(const LibraryAttentionShape& shape,
                                                                     const GradientCall& call, const CudnnTarget& target);
  ~CudnnAttentionGraph();
  CudnnAttentionGraph(const CudnnAttentionGraph&) = delete;
  CudnnAttentionGraph& operator=(const CudnnAttentionGraph&) = delete;

  int64_t workspace_bytes() const;
  // cuDNN's engine with its knobs: "eng6_k24=26".
  std::string plan() const;
  // Onto the stream of `handle`. REQUIRES: the graph was made with it, and as MakeForward or MakeGradient says.
  Status Enqueue(cudnnContext* handle, const AttentionArgs& args, void* workspace) const;
  Status Enqueue(cudnnContext* handle, const AttentionGradArgs& args, void* workspace) const;

 private:
  struct Graph;
  explicit CudnnAttentionGraph(std::unique_ptr<Graph> graph);

  std::unique_ptr<Graph> graph_;
};

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_CUDNN_ATTENTION_GRAPH_H_
