// Times the algorithms of a product against each other on a device, on operands of random numbers (noise.h).
#ifndef TROUPE_KERNELS_CUDA_PRODUCT_TIMING_H_
#define TROUPE_KERNELS_CUDA_PRODUCT_TIMING_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/device_timer.h"
#include "kernels/cuda/lt_matmul.h"

namespace troupe::kernels::cuda {

class ProductTiming {
 public:
  // `device` and `matmul` outlive this. RESOURCE_EXHAUSTED where operands and working memory do not fit beside what the
  // device holds.
  static StatusOr<std::unique_ptr<ProductTiming>> Make(CudaDevice& device, const LtMatmul& matmul,
                                                       int64_t workspace_bytes);
  ProductTiming(const ProductTiming&) = delete;
  ProductTiming& operator=(const ProductTiming&) = delete;

  // The place of the one that takes least time, of those that run; the first of several alike. INTERNAL where none does;
  // the device's errors.
  StatusOr<size_t> Fastest(const std::vector<LtAlgorithm>& algorithms);

 private:
  ProductTiming(CudaDevice& device, const LtMatmul& matmul) : device_(device), matmul_(matmul) {}
  // Of one of `launches` in a row.
  StatusOr<double> Seconds(const LtAlgorithm& algorithm, int launches);

  CudaDevice& device_;
  const LtMatmul& matmul_;
  DeviceMemory a_, b_, c_, workspace_;
  DeviceMemory scale_;  // of factors in 8 bits
  std::unique_ptr<DeviceTimer> timer_;
};

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_PRODUCT_TIMING_H_
