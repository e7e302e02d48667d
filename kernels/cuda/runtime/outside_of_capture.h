// By default the runtime forbids a thread certain calls during a capture, because they are not
// captured.
#ifndef TROUPE_KERNELS_CUDA_RUNTIME_OUTSIDE_OF_CAPTURE_H_
#define TROUPE_KERNELS_CUDA_RUNTIME_OUTSIDE_OF_CAPTURE_H_

#include <cuda_runtime_api.h>

namespace troupe::kernels::cuda {

// While it exists, this thread may make such calls: kernels are loaded onto the device at first
// use, which may be during a capture. Work enqueued on the captured stream is still captured.
class OutsideOfCapture {
 public:
  OutsideOfCapture() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  ~OutsideOfCapture() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  OutsideOfCapture(const OutsideOfCapture&) = delete;
  OutsideOfCapture& operator=(const OutsideOfCapture&) = delete;

 private:
  // After construction, this is the thread's previous mode.
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_RUNTIME_OUTSIDE_OF_CAPTURE_H_
