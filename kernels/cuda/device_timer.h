// Seconds by a GPU's own clock between two places of its compute stream.
#ifndef TROUPE_KERNELS_CUDA_DEVICE_TIMER_H_
#define TROUPE_KERNELS_CUDA_DEVICE_TIMER_H_

#include <functional>
#include <memory>

#include "base/status.h"
#include "kernels/cuda/cuda_device.h"

namespace troupe::kernels::cuda {

class DeviceTimer {
 public:
  // `device` outlives this.
  static StatusOr<std::unique_ptr<DeviceTimer>> Make(CudaDevice& device);
  ~DeviceTimer();
  DeviceTimer(const DeviceTimer&) = delete;
  DeviceTimer& operator=(const DeviceTimer&) = delete;

  // What the compute stream takes for what `enqueue` puts onto it, which is over on return.
  StatusOr<double> Seconds(const std::function<Status()>& enqueue);

 private:
  explicit DeviceTimer(CudaDevice& device) : device_(device) {}

  CudaDevice& device_;
  CUevent_st* begin_ = nullptr;
  CUevent_st* end_ = nullptr;
  Event over_ = 0;
};

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_DEVICE_TIMER_H_
