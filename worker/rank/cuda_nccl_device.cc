#include "worker/rank/cuda_nccl_device.h"

#include <atomic>
#include <cstring>

#include "kernels/cuda/mark.h"

namespace troupe {

using kernels::cuda::DeviceMemory;
using kernels::cuda::Mark;
using kernels::cuda::Stream;

DeviceMemory& CudaNcclDevice::MemoryOf(int mark) const {
  const std::lock_guard lock(mutex_);
  return marks_[static_cast<size_t>(mark)];
}

StatusOr<int> CudaNcclDevice::MakeMark() {
  TROUPE_ASSIGN_OR_RETURN(DeviceMemory memory, device_.AllocatePinned(sizeof(Mark)));
  std::memset(memory.get(), 0, sizeof(Mark));
  const std::lock_guard lock(mutex_);
  marks_.push_back(std::move(memory));
  return static_cast<int>(marks_.size() - 1);
}

Status CudaNcclDevice::Begin(int mark, DeviceStream stream) {
  return device_.Launch(BeginMark(reinterpret_cast<Mark*>(MemoryOf(mark).get())),
                        static_cast<Stream>(stream));
}

Status CudaNcclDevice::End(int mark, DeviceStream stream) {
  return device_.Launch(EndMark(reinterpret_cast<Mark*>(MemoryOf(mark).get())),
                        static_cast<Stream>(stream));
}

NcclDevice::Progress CudaNcclDevice::Read(int mark) const {
  auto& slot = *reinterpret_cast<Mark*>(MemoryOf(mark).get());
  // The device writes them in the other order.
  Progress progress;
  progress.over = std::atomic_ref(slot.over).load(std::memory_order_acquire);
  progress.seconds =
      1e-9 * static_cast<double>(std::atomic_ref(slot.total_ns).load(std::memory_order_acquire));
  progress.begun = std::atomic_ref(slot.begun).load(std::memory_order_acquire);
  return progress;
}

}  // namespace troupe
