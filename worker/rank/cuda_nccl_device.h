// Gives NCCL communicators access to a GPU: its streams, and marks on them.
#ifndef TROUPE_WORKER_RANK_CUDA_NCCL_DEVICE_H_
#define TROUPE_WORKER_RANK_CUDA_NCCL_DEVICE_H_

#include "collective/nccl/nccl_device.h"
#include "kernels/cuda/runtime/cuda_device.h"
#include "kernels/cuda/runtime/device_marks.h"

namespace troupe {

class CudaNcclDevice : public NcclDevice {
 public:
  // `device` outlives this object.
  explicit CudaNcclDevice(kernels::cuda::CudaDevice& device) : device_(device), marks_(device) {}

  Status Use() override { return device_.Enter(); }
  void* NativeStream(DeviceStream stream) override {
    return device_.native_stream(StreamOf(stream));
  }
  StatusOr<int> MakeMark() override { return marks_.Make(); }
  Status Begin(int mark, DeviceStream stream) override {
    return marks_.Begin(mark, StreamOf(stream));
  }
  Status End(int mark, DeviceStream stream) override { return marks_.End(mark, StreamOf(stream)); }
  Progress Read(int mark) const override {
    const kernels::cuda::DeviceMarks::Progress progress = marks_.Read(mark);
    return {progress.begun, progress.over, progress.seconds};
  }

 private:
  static kernels::cuda::Stream StreamOf(DeviceStream stream) {
    return static_cast<kernels::cuda::Stream>(stream);
  }

  kernels::cuda::CudaDevice& device_;
  kernels::cuda::DeviceMarks marks_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_CUDA_NCCL_DEVICE_H_
