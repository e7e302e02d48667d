#include "kernels/cuda/runtime/cuda_error.h"

#include "kernels/cuda/runtime/device_loss.h"

namespace troupe::kernels::cuda {
namespace {

StatusCode CodeOf(cudaError_t error) {
  switch (error) {
    case cudaErrorMemoryAllocation:
      return StatusCode::kResourceExhausted;
    case cudaErrorNoDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorInitializationError:
    case cudaErrorStubLibrary:
    case cudaErrorDevicesUnavailable:
    case cudaErrorSystemNotReady:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorCompatNotSupportedOnDevice:
      return StatusCode::kUnavailable;
    default:
      return StatusCode::kInternal;
  }
}

}  // namespace

// The errors after which "the process must be terminated and relaunched" by driver_types.h, and
// uncorrectable errors of memory and links.
bool LosesDevice(cudaError_t error) {
  switch (error) {
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorContained:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorTensorMemoryLeak:
    case cudaErrorMpsClientTerminated:
    case cudaErrorExternalDevice:
    case cudaErrorUnknown:
      return true;
    default:
      return false;
  }
}

Status FromCuda(cudaError_t error, std::string_view what) {
  if (error == cudaSuccess) return OkStatus();
  const Status status = MakeStatus(
      CodeOf(error),
      fmt::format("{}: {}: {}", what, cudaGetErrorName(error), cudaGetErrorString(error)));
  return LosesDevice(error) ? WithDeviceLoss(status, cudaGetErrorName(error)) : status;
}

Status CheckCuda(cudaError_t error, std::string_view what) {
  if (error != cudaSuccess) (void)cudaGetLastError();
  return FromCuda(error, what);
}

}  // namespace troupe::kernels::cuda
