// Copies values from device memory to pinned memory, after all work enqueued so far on the compute
// stream.
#ifndef TROUPE_KERNELS_CUDA_RUNTIME_CUDA_DELAYED_READ_H_
#define TROUPE_KERNELS_CUDA_RUNTIME_CUDA_DELAYED_READ_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "kernels/backend/delayed_read.h"
#include "kernels/cuda/runtime/device.h"
#include "kernels/cuda/runtime/stalls.h"

namespace troupe::kernels::cuda {

class CudaDelayedRead : public DelayedRead {
 public:
  struct Source {
    const char* address;
    int64_t bytes;
  };
  // `device` and `stalls` must outlive the result.
  static StatusOr<std::unique_ptr<DelayedRead>> Make(Device& device, const Stalls& stalls,
                                                     std::vector<Source> sources);

  // Waits for the copies in flight.
  ~CudaDelayedRead() override { Finish().IgnoreError(); }

  Status Start() override;
  Status Finish() final { return device_.Finish(arrived_); }
  std::span<const std::byte> bytes(size_t index) const override;
  std::optional<DeviceStalls> stalls() const override {
    return DecodeStalls(bytes(sources_.size() - 1));
  }

 private:
  CudaDelayedRead(Device& device, std::vector<Source> sources);

  Device& device_;
  const std::vector<Source> sources_;  // the last one is the stalls
  std::vector<int64_t> offsets_;       // into pinned_; the last is its size in bytes
  DeviceMemory pinned_;
  Event arrived_ = 0;
};

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_RUNTIME_CUDA_DELAYED_READ_H_
