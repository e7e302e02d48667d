// What NCCL's communicators need of the GPU that they are for.
#ifndef TROUPE_COLLECTIVE_NCCL_NCCL_DEVICE_H_
#define TROUPE_COLLECTIVE_NCCL_NCCL_DEVICE_H_

#include <cstdint>

#include "base/status.h"
#include "collective/device_communicator.h"

namespace troupe {

// Thread-safety: Use and Read from any thread, the rest from the one that puts work onto streams.
class NcclDevice {
 public:
  virtual ~NcclDevice() = default;

  // Makes this the calling thread's device.
  virtual Status Use() = 0;
  // CUDA's handle.
  virtual void* NativeStream(DeviceStream stream) = 0;

  // A mark counts how often streams have come to the beginning and to the end of an operation, in graphs too.
  virtual StatusOr<int> MakeMark() = 0;
  virtual Status Begin(int mark, DeviceStream stream) = 0;
  virtual Status End(int mark, DeviceStream stream) = 0;
  struct Progress {
    uint64_t begun = 0, over = 0;  // the device may be between the two reads: over <= begun holds all the same
    double seconds = 0;            // from beginning to end, of all that are over
  };
  // Never waits for the device.
  virtual Progress Read(int mark) const = 0;
};

}  // namespace troupe

#endif  // TROUPE_COLLECTIVE_NCCL_NCCL_DEVICE_H_
