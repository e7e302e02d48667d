// A device of which this process can have nothing more: after an illegal address, an uncorrectable memory error and their
// like every call of the driver fails, until another process begins anew. That travels with the status, so that whoever
// owns the process replaces it.
#ifndef TROUPE_KERNELS_CUDA_DEVICE_LOSS_H_
#define TROUPE_KERNELS_CUDA_DEVICE_LOSS_H_

#include <string>
#include <string_view>

#include "base/status.h"

namespace troupe::kernels::cuda {

// `status` as the loss of the device by `error`, such as "cudaErrorIllegalAddress"; OK stays OK. Annotate keeps it.
Status WithDeviceLoss(Status status, std::string_view error);

// The error that WithDeviceLoss attached; empty where the process may go on with its device.
std::string DeviceLossOf(const Status& status);

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_DEVICE_LOSS_H_
