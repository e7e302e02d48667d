// cuDNN 9, loaded when it is first asked for and never linked: the functions of <cudnn.h> that we and its front end call are
// defined here and go on to those of the loaded library. As if it were linked, there is one a process, and it stays.
#ifndef TROUPE_KERNELS_CUDA_CUDNN_LIBRARY_H_
#define TROUPE_KERNELS_CUDA_CUDNN_LIBRARY_H_

#include <cstdint>
#include <string>

#include "base/status.h"

namespace troupe::kernels::cuda {

// 9.16: since then attention of any number of tokens needs no copies from the host, and lse is written as it is described.
inline constexpr int64_t kCudnnVersionMin = 91600;

// Loads it, unless that is done. Thread-safe. NOT_FOUND where it is not there, FAILED_PRECONDITION where it is older than
// kCudnnVersionMin or a later major version, UNIMPLEMENTED where it lacks a function.
Status LoadCudnn(const std::string& name = "libcudnn.so.9");

// 91900 and "9.19.0". REQUIRES: LoadCudnn succeeded.
int64_t CudnnVersion();
std::string CudnnVersionText();

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_CUDNN_LIBRARY_H_
