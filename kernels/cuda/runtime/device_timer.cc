#include "kernels/cuda/runtime/device_timer.h"

#include <cuda_runtime_api.h>

#include "kernels/cuda/runtime/cuda_error.h"

namespace troupe::kernels::cuda {

StatusOr<std::unique_ptr<DeviceTimer>> DeviceTimer::Make(CudaDevice& device) {
  std::unique_ptr<DeviceTimer> timer(new DeviceTimer(device));
  TROUPE_RETURN_IF_ERROR(device.Enter());
  TROUPE_ASSIGN_OR_RETURN(timer->over_, device.MakeEvent());
  TROUPE_RETURN_IF_ERROR(CheckCuda(cudaEventCreate(&timer->begin_), "event"));
  TROUPE_RETURN_IF_ERROR(CheckCuda(cudaEventCreate(&timer->end_), "event"));
  return timer;
}

DeviceTimer::~DeviceTimer() {
  if (begin_ != nullptr) cudaEventDestroy(begin_);
  if (end_ != nullptr) cudaEventDestroy(end_);
}

StatusOr<double> DeviceTimer::Seconds(const std::function<Status()>& enqueue) {
  CUstream_st* const stream = device_.native_stream(Stream::kCompute);
  TROUPE_RETURN_IF_ERROR(CheckCuda(cudaEventRecord(begin_, stream), "event"));
  TROUPE_RETURN_IF_ERROR(enqueue());
  TROUPE_RETURN_IF_ERROR(CheckCuda(cudaEventRecord(end_, stream), "event"));
  TROUPE_RETURN_IF_ERROR(device_.Record(over_, Stream::kCompute));
  TROUPE_RETURN_IF_ERROR(device_.Finish(over_));
  float milliseconds = 0;
  TROUPE_RETURN_IF_ERROR(
      CheckCuda(cudaEventElapsedTime(&milliseconds, begin_, end_), "time of the device"));
  return static_cast<double>(milliseconds) * 1e-3;
}

}  // namespace troupe::kernels::cuda
