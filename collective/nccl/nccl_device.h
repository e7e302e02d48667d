// The interface of the GPU that NCCL communicators need.
#ifndef TROUPE_COLLECTIVE_NCCL_NCCL_DEVICE_H_
#define TROUPE_COLLECTIVE_NCCL_NCCL_DEVICE_H_

#include <cstdint>

#include "base/status.h"
#include "collective/device_communicator.h"

namespace troupe {

// Thread-safety: Use and Read from any thread, the rest from the thread that enqueues work.
class NcclDevice {
 public:
  virtual ~NcclDevice() = default;

  // Makes this device current for the calling thread.
  virtual Status Use() = 0;
  // The CUDA stream handle.
  virtual void* NativeStream(DeviceStream stream) = 0;

  // A mark counts how often streams have begun and ended an operation, including runs from graphs.
  virtual StatusOr<int> MakeMark() = 0;
  virtual Status Begin(int mark, DeviceStream stream) = 0;
  virtual Status End(int mark, DeviceStream stream) = 0;
  struct Progress {
    // The device may advance between the two reads; over <= begun holds nevertheless.
    uint64_t begun = 0, over = 0;
    double seconds = 0;  // from begin to end, summed over all ended runs
  };
  // Never blocks on the device.
  virtual Progress Read(int mark) const = 0;
};

}  // namespace troupe

#endif  // TROUPE_COLLECTIVE_NCCL_NCCL_DEVICE_H_
