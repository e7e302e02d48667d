// Loads cuDNN 9 at first use instead of linking it: the functions of <cudnn.h> that we and cuDNN's
// front end call are defined here and forward to the loaded library. As with linking, there is one
// copy per process, and it is never unloaded.
#ifndef TROUPE_KERNELS_CUDA_LIBRARIES_CUDNN_LIBRARY_H_
#define TROUPE_KERNELS_CUDA_LIBRARIES_CUDNN_LIBRARY_H_

#include <cstdint>
#include <string>

#include "base/status.h"

namespace troupe::kernels::cuda {

// 9.16: since this version, attention of any number of tokens needs no copies from the host, and
// lse is written in the described layout.
inline constexpr int64_t kCudnnVersionMin = 91600;

// Loads cuDNN if that has not been done yet. Thread-safe. Errors: NOT_FOUND if it is not installed,
// FAILED_PRECONDITION if it is older than kCudnnVersionMin or of a later major version,
// UNIMPLEMENTED if a function is missing.
Status LoadCudnn(const std::string& name = "libcudnn.so.9");

// 91900 and "9.19.0". REQUIRES: LoadCudnn succeeded.
int64_t CudnnVersion();
std::string CudnnVersionText();

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_LIBRARIES_CUDNN_LIBRARY_H_
