// Marks a status with the loss of a device: after an illegal address, an uncorrectable memory error
// and similar, every driver call of this process fails until a new process starts. The mark travels
// with the status, so that the owner of the process can replace it.
#ifndef TROUPE_KERNELS_CUDA_RUNTIME_DEVICE_LOSS_H_
#define TROUPE_KERNELS_CUDA_RUNTIME_DEVICE_LOSS_H_

#include <string>
#include <string_view>

#include "base/status.h"

namespace troupe::kernels::cuda {

// Marks `status` with the loss of the device by `error`, such as "cudaErrorIllegalAddress"; OK
// stays OK. Annotate preserves the mark.
Status WithDeviceLoss(Status status, std::string_view error);

// The error that WithDeviceLoss attached; empty if the process can continue to use its device.
std::string DeviceLossOf(const Status& status);

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_RUNTIME_DEVICE_LOSS_H_
