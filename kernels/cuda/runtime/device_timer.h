// Measures seconds by a GPU's own clock between two points of its compute stream.
#ifndef TROUPE_KERNELS_CUDA_RUNTIME_DEVICE_TIMER_H_
#define TROUPE_KERNELS_CUDA_RUNTIME_DEVICE_TIMER_H_

#include <functional>
#include <memory>

#include "base/status.h"
#include "kernels/cuda/runtime/cuda_device.h"

namespace troupe::kernels::cuda {

class DeviceTimer {
 public:
  // `device` must outlive this object.
  static StatusOr<std::unique_ptr<DeviceTimer>> Make(CudaDevice& device);
  ~DeviceTimer();
  DeviceTimer(const DeviceTimer&) = delete;
  DeviceTimer& operator=(const DeviceTimer&) = delete;

  // The seconds that the compute stream takes for the work that `enqueue` enqueues; the work has
  // completed on return.
  StatusOr<double> Seconds(const std::function<Status()>& enqueue);

 private:
  explicit DeviceTimer(CudaDevice& device) : device_(device) {}

  CudaDevice& device_;
  CUevent_st* begin_ = nullptr;
  CUevent_st* end_ = nullptr;
  Event over_ = 0;
};

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_RUNTIME_DEVICE_TIMER_H_
