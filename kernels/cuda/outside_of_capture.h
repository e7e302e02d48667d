// Calls that the runtime forbids a thread during a capture by default, since they are not part of what is captured.
#ifndef TROUPE_KERNELS_CUDA_OUTSIDE_OF_CAPTURE_H_
#define TROUPE_KERNELS_CUDA_OUTSIDE_OF_CAPTURE_H_

#include <cuda_runtime_api.h>

namespace troupe::kernels::cuda {

// While it lives, this thread may make them: kernels are brought onto the device when they are first used, which may be
// in a capture. What goes onto the captured stream is captured as ever.
class OutsideOfCapture {
 public:
  OutsideOfCapture() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  ~OutsideOfCapture() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  OutsideOfCapture(const OutsideOfCapture&) = delete;
  OutsideOfCapture& operator=(const OutsideOfCapture&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;  // after the first exchange: the thread's own
};

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_OUTSIDE_OF_CAPTURE_H_
