// One attention as a cuDNN graph, built by cuDNN's front end. Immutable once made.
//
// Tensors are described in their existing layout: q, k and v in rows of qkv; lse as f[R,Q] where it
// is computed, and by heads, f[samples,Q,T], where the gradient reads it. cuDNN's statistics equal
// our lse: max + log(sum) of a row's scores, in the natural logarithm. The gradient uses cuDNN's
// deterministic algorithm, which stores the gradients of all scores of a call in its workspace.
#ifndef TROUPE_KERNELS_CUDA_LIBRARIES_CUDNN_ATTENTION_GRAPH_H_
#define TROUPE_KERNELS_CUDA_LIBRARIES_CUDNN_ATTENTION_GRAPH_H_

#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"
#include "kernels/cuda/runtime/attention_library.h"

// cuDNN's cudnnHandle_t.
struct cudnnContext;

namespace troupe::kernels::cuda {

// The device that a graph is made for.
struct CudnnTarget {
  cudnnContext* handle = nullptr;
  int capability = 0;  // 90
  int multiprocessors = 0;
  // Used if there is no handle: cuDNN's description of a device
  // (CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION). The graph is then made without the device and
  // cannot be run.
  std::string device_properties;
};

// The part of a shape that one gradient call covers: several samples, or several key-value heads of
// one sample with their query heads. Both are divisors of the total.
struct GradientCall {
  int64_t samples = 1, key_value_heads = 1;
  bool operator==(const GradientCall&) const = default;
};
// The largest part of `shape` that the workspace limit allows, at least one head of one sample.
// Pure.
GradientCall GradientCallOf(const LibraryAttentionShape& shape, int64_t workspace_limit);

class CudnnAttentionGraph {
 public:
  // Errors: UNIMPLEMENTED with cuDNN's reason if it has no plan. REQUIRES: LoadCudnn succeeded.
  static StatusOr<std::unique_ptr<CudnnAttentionGraph>> MakeForward(
      const LibraryAttentionShape& shape, const CudnnTarget& target);
  // The gradient of the part of `shape` that `call` covers, in the layout of the whole shape.
  static StatusOr<std::unique_ptr<CudnnAttentionGraph>> MakeGradient(
      const LibraryAttentionShape& shape, const GradientCall& call, const CudnnTarget& target);
  ~CudnnAttentionGraph();
  CudnnAttentionGraph(const CudnnAttentionGraph&) = delete;
  CudnnAttentionGraph& operator=(const CudnnAttentionGraph&) = delete;

  int64_t workspace_bytes() const;
  // cuDNN's engine and its knobs: "eng6_k24=26".
  std::string plan() const;
  // Enqueues on the stream of `handle`. REQUIRES: the graph was made with `handle`, and `args`
  // match MakeForward or MakeGradient.
  Status Enqueue(cudnnContext* handle, const AttentionArgs& args, void* workspace) const;
  Status Enqueue(cudnnContext* handle, const AttentionGradArgs& args, void* workspace) const;

 private:
  struct Graph;
  explicit CudnnAttentionGraph(std::unique_ptr<Graph> graph);

  std::unique_ptr<Graph> graph_;
};

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_LIBRARIES_CUDNN_ATTENTION_GRAPH_H_
