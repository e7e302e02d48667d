// A GPU as NCCL's communicators need it: its streams, and marks on them.
#ifndef TROUPE_WORKER_RANK_CUDA_NCCL_DEVICE_H_
#define TROUPE_WORKER_RANK_CUDA_NCCL_DEVICE_H_

#include <deque>
#include <mutex>

#include "collective/nccl/nccl_device.h"
#include "kernels/cuda/cuda_device.h"

namespace troupe {

class CudaNcclDevice : public NcclDevice {
 public:
  // `device` outlives this.
  explicit CudaNcclDevice(kernels::cuda::CudaDevice& device) : device_(device) {}

  Status Use() override { return device_.Enter(); }
  void* NativeStream(DeviceStream stream) override {
    return device_.native_stream(static_cast<kernels::cuda::Stream>(stream));
  }
  StatusOr<int> MakeMark() override;
  Status Begin(int mark, DeviceStream stream) override;
  Status End(int mark, DeviceStream stream) override;
  Progress Read(int mark) const override;

 private:
  kernels::cuda::DeviceMemory& MemoryOf(int mark) const;

  kernels::cuda::CudaDevice& device_;
  mutable std::mutex mutex_;  // of the list; what it holds stays where it is
  mutable std::deque<kernels::cuda::DeviceMemory> marks_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_CUDA_NCCL_DEVICE_H_
