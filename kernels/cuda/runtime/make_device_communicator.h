// The function by which a backend obtains the communicators of its device.
#ifndef TROUPE_KERNELS_CUDA_RUNTIME_MAKE_DEVICE_COMMUNICATOR_H_
#define TROUPE_KERNELS_CUDA_RUNTIME_MAKE_DEVICE_COMMUNICATOR_H_

#include <functional>
#include <memory>

#include "base/status.h"
#include "collective/communicator.h"
#include "collective/device_communicator.h"

namespace troupe::kernels {

// Makes the device communicator for a host group; it is not connected yet.
using MakeDeviceCommunicator =
    std::function<StatusOr<std::unique_ptr<DeviceCommunicator>>(Communicator&)>;

}  // namespace troupe::kernels

#endif  // TROUPE_KERNELS_CUDA_RUNTIME_MAKE_DEVICE_COMMUNICATOR_H_
