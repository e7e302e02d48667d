// Times the algorithms of a matmul against each other on a device, with random operands (noise.h).
#ifndef TROUPE_KERNELS_CUDA_LIBRARIES_MATMUL_TIMING_H_
#define TROUPE_KERNELS_CUDA_LIBRARIES_MATMUL_TIMING_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "kernels/cuda/libraries/lt_matmul.h"
#include "kernels/cuda/runtime/cuda_device.h"
#include "kernels/cuda/runtime/device_timer.h"

namespace troupe::kernels::cuda {

class MatmulTiming {
 public:
  // `device` and `matmul` must outlive this object. Errors: RESOURCE_EXHAUSTED if operands and
  // workspace do not fit into the free device memory.
  static StatusOr<std::unique_ptr<MatmulTiming>> Make(CudaDevice& device, const LtMatmul& matmul,
                                                      int64_t workspace_bytes);
  MatmulTiming(const MatmulTiming&) = delete;
  MatmulTiming& operator=(const MatmulTiming&) = delete;

  // The index of the fastest algorithm among those that run, or the first of several equally fast.
  // Errors: INTERNAL if none runs; the device's errors.
  StatusOr<size_t> Fastest(const std::vector<LtAlgorithm>& algorithms);

 private:
  MatmulTiming(CudaDevice& device, const LtMatmul& matmul) : device_(device), matmul_(matmul) {}
  // Seconds per launch, over `launches` in a row.
  StatusOr<double> Seconds(const LtAlgorithm& algorithm, int launches);

  CudaDevice& device_;
  const LtMatmul& matmul_;
  DeviceMemory a_, b_, c_, workspace_;
  DeviceMemory scale_;  // scales of FP8 operands
  std::unique_ptr<DeviceTimer> timer_;
};

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_LIBRARIES_MATMUL_TIMING_H_
