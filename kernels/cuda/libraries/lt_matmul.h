// One matmul in cuBLASLt: its descriptors, the algorithms that cuBLASLt proposes, and calls of
// them.
#ifndef TROUPE_KERNELS_CUDA_LIBRARIES_LT_MATMUL_H_
#define TROUPE_KERNELS_CUDA_LIBRARIES_LT_MATMUL_H_

#include <cublasLt.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "kernels/cuda/libraries/matmul_tuning_cache.h"
#include "kernels/cuda/runtime/matmul_library.h"

namespace troupe::kernels::cuda {

// "`what`: CUBLAS_STATUS_X: its text". RESOURCE_EXHAUSTED if memory is lacking, UNAVAILABLE if the
// library could not be initialised, otherwise INTERNAL.
Status FromLt(cublasStatus_t status, std::string_view what);

// The alignment of operand addresses in bytes, enough for all of cuBLASLt's kernels.
inline constexpr uint32_t kOperandAlignment = 16;

struct LtAlgorithm {
  cublasLtMatmulAlgo_t algorithm;
  int64_t workspace_bytes = 0;
};

// The form in which an algorithm is stored on disk.
Algorithm ToNumbers(const cublasLtMatmulAlgo_t& algorithm);
// "algorithm 66 tile 20 stages 35 split 1", in the library's own numbers.
std::string Describe(const cublasLtMatmulAlgo_t& algorithm);

// One thread at a time may use it, because the scales of a call are part of cuBLASLt's descriptor.
class LtMatmul {
 public:
  static StatusOr<LtMatmul> Make(cublasLtHandle_t handle, const MatmulShape& shape);

  const MatmulShape& shape() const { return shape_; }
  // Returns at most `count` algorithms, best first by the library's heuristic; empty if it supports
  // none. They need at most `workspace_limit` bytes of workspace, accumulate as described in
  // cublaslt_library.h, and give the same bits in every run.
  StatusOr<std::vector<LtAlgorithm>> Propose(int64_t workspace_limit, int count) const;
  // Restores a stored algorithm if this device can run it within the limit.
  std::optional<LtAlgorithm> Restore(const Algorithm& numbers, int64_t workspace_limit) const;
  // a, b, c: operands and result of the matmul. REQUIRES: they are aligned to kOperandAlignment,
  // the workspace to 256. `scales`: of FP8 operands, in device memory.
  Status Enqueue(const LtAlgorithm& algorithm, const void* a, const void* b, void* c,
                 bool accumulate, void* workspace, cudaStream_t stream,
                 const OperandScales& scales) const;

 private:
  template <typename Handle, cublasStatus_t (*kDestroy)(Handle)>
  struct Destroy {
    using pointer = Handle;
    void operator()(Handle handle) const { kDestroy(handle); }
  };
  using Descriptor = std::unique_ptr<cublasLtMatmulDescOpaque_t,
                                     Destroy<cublasLtMatmulDesc_t, &cublasLtMatmulDescDestroy>>;
  using Layout = std::unique_ptr<cublasLtMatrixLayoutOpaque_t,
                                 Destroy<cublasLtMatrixLayout_t, &cublasLtMatrixLayoutDestroy>>;
  using Preference =
      std::unique_ptr<cublasLtMatmulPreferenceOpaque_t,
                      Destroy<cublasLtMatmulPreference_t, &cublasLtMatmulPreferenceDestroy>>;

  LtMatmul(cublasLtHandle_t handle, const MatmulShape& shape) : handle_(handle), shape_(shape) {}
  Status SetScales(const OperandScales& scales) const;

  cublasLtHandle_t handle_;
  MatmulShape shape_;
  Descriptor descriptor_;
  Layout a_, b_, d_;  // the library's a is our operand b
};

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_LIBRARIES_LT_MATMUL_H_
