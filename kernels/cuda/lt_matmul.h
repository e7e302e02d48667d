// One product as cuBLASLt has it: descriptors, the algorithms that it proposes, and calls of them.
#ifndef TROUPE_KERNELS_CUDA_LT_MATMUL_H_
#define TROUPE_KERNELS_CUDA_LT_MATMUL_H_

#include <cublasLt.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "kernels/cuda/product_choices.h"
#include "kernels/cuda/product_library.h"

namespace troupe::kernels::cuda {

// "`what`: CUBLAS_STATUS_X: its text": RESOURCE_EXHAUSTED where memory is lacking, UNAVAILABLE where the library could not
// begin, else INTERNAL.
Status FromLt(cublasStatus_t status, std::string_view what);

// What addresses of operands are multiples of, in bytes: as much as any of its kernels asks for.
inline constexpr uint32_t kOperandAlignment = 16;

struct LtAlgorithm {
  cublasLtMatmulAlgo_t algorithm;
  int64_t workspace_bytes = 0;
};

// An algorithm as it is kept on disk.
Algorithm ToNumbers(const cublasLtMatmulAlgo_t& algorithm);
// "algorithm 66 tile 20 stages 35 split 1", in the library's own numbers.
std::string Describe(const cublasLtMatmulAlgo_t& algorithm);

// Used by one thread at a time: what a call multiplies by is part of the library's description of it.
class LtMatmul {
 public:
  static StatusOr<LtMatmul> Make(cublasLtHandle_t handle, const ProductShape& shape);

  const ProductShape& shape() const { return shape_; }
  // The best first as the library guesses, at most `count`; none where it has none. They need no more working memory than
  // `workspace_limit` bytes, sum as cublaslt_library.h says, and give the same bits in every run.
  StatusOr<std::vector<LtAlgorithm>> Propose(int64_t workspace_limit, int count) const;
  // What was kept, where this device can run it within the limit.
  std::optional<LtAlgorithm> Restore(const Algorithm& numbers, int64_t workspace_limit) const;
  // a, b, c: of the product. REQUIRES: aligned to kOperandAlignment, the workspace to 256.
  // `scales`: of factors in 8 bits, on the device.
  Status Enqueue(const LtAlgorithm& algorithm, const void* a, const void* b, void* c, bool accumulate,
                 void* workspace, cudaStream_t stream, const ProductScales& scales) const;

 private:
  template <typename Handle, cublasStatus_t (*kDestroy)(Handle)>
  struct Destroy {
    using pointer = Handle;
    void operator()(Handle handle) const { kDestroy(handle); }
  };
  using Descriptor =
      std::unique_ptr<cublasLtMatmulDescOpaque_t, Destroy<cublasLtMatmulDesc_t, &cublasLtMatmulDescDestroy>>;
  using Layout =
      std::unique_ptr<cublasLtMatrixLayoutOpaque_t, Destroy<cublasLtMatrixLayout_t, &cublasLtMatrixLayoutDestroy>>;
  using Preference = std::unique_ptr<cublasLtMatmulPreferenceOpaque_t,
                                     Destroy<cublasLtMatmulPreference_t, &cublasLtMatmulPreferenceDestroy>>;

  LtMatmul(cublasLtHandle_t handle, const ProductShape& shape) : handle_(handle), shape_(shape) {}
  Status SetScales(const ProductScales& scales) const;

  cublasLtHandle_t handle_;
  ProductShape shape_;
  Descriptor descriptor_;
  Layout a_, b_, d_;  // the library's a is the product's b
};

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_LT_MATMUL_H_
