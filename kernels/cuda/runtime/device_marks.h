// The progress marks of a device's operations (kernels/cuda/kernels/mark.h), by number; read by the
// watchdog and by the statistics of collectives.
//
// Thread-safety: Read from any thread, the rest from one.
#ifndef TROUPE_KERNELS_CUDA_RUNTIME_DEVICE_MARKS_H_
#define TROUPE_KERNELS_CUDA_RUNTIME_DEVICE_MARKS_H_

#include <cstdint>
#include <mutex>
#include <vector>

#include "base/status.h"
#include "kernels/cuda/kernels/mark.h"
#include "kernels/cuda/runtime/device.h"

namespace troupe::kernels::cuda {

class DeviceMarks {
 public:
  // `device` must outlive this object, and this object the work on the device's streams.
  explicit DeviceMarks(Device& device) : device_(device) {}

  // Makes a mark whose counters are zero and returns its number. Returns errors of the device's
  // memory.
  StatusOr<int> Make();
  Status Begin(int mark, Stream stream) { return device_.Launch(BeginMark(Words(mark)), stream); }
  Status End(int mark, Stream stream) { return device_.Launch(EndMark(Words(mark)), stream); }

  struct Progress {
    uint64_t begun = 0, over = 0;  // over <= begun
    double seconds = 0;            // total of the completed ones
  };
  // Does not wait for the device.
  Progress Read(int mark) const;

 private:
  MarkWords* Words(int mark) const;

  Device& device_;
  mutable std::mutex mutex_;
  std::vector<DeviceMemory> blocks_;  // pinned, kMarksPerBlock each
  int made_ = 0;
};

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_RUNTIME_DEVICE_MARKS_H_
