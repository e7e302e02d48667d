// Loads cuBLASLt at first use instead of linking it: the functions of <cublasLt.h> that we call are
// defined here and forward to the loaded library. As with linking, there is one copy per process,
// and it is never unloaded.
//
// Linking would add cuBLASLt to every program that can use a GPU, and with it 92 KiB of
// thread-local variables to the stack of each thread. Libraries that create threads with small
// stacks could then not start them (civetweb: 100 KiB).
#ifndef TROUPE_KERNELS_CUDA_LIBRARIES_CUBLASLT_FUNCTIONS_H_
#define TROUPE_KERNELS_CUDA_LIBRARIES_CUBLASLT_FUNCTIONS_H_

#include <string>

#include "base/status.h"

namespace troupe::kernels::cuda {

// Loads cuBLASLt if that has not been done yet. Thread-safe. Errors: NOT_FOUND if it is not
// installed, FAILED_PRECONDITION if it is older than the headers or of another major version,
// UNIMPLEMENTED if a function is missing.
Status LoadCublasLt();
Status LoadCublasLt(const std::string& name);

// "13.1.0". REQUIRES: LoadCublasLt succeeded.
std::string CublasLtVersion();

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_LIBRARIES_CUBLASLT_FUNCTIONS_H_
