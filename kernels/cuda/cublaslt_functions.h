// cuBLASLt, loaded when it is first asked for and never linked: the functions of <cublasLt.h> that we call are defined here and go
// on to those of the loaded library. As if it were linked, there is one a process, and it stays.
//
// Linked, it would be part of every program that can use a GPU, and with it 92 KiB of variables on the stack of each of their
// threads: more than a library that gives its threads little leaves for them (civetweb's 100 KiB: no thread starts).
#ifndef TROUPE_KERNELS_CUDA_CUBLASLT_FUNCTIONS_H_
#define TROUPE_KERNELS_CUDA_CUBLASLT_FUNCTIONS_H_

#include <string>

#include "base/status.h"

namespace troupe::kernels::cuda {

// Loads it, unless that is done. Thread-safe. NOT_FOUND where it is not there, FAILED_PRECONDITION where it is older than
// what it was compiled for or of another major version, UNIMPLEMENTED where it lacks a function.
Status LoadCublasLt();
Status LoadCublasLt(const std::string& name);

// "13.1.0". REQUIRES: LoadCublasLt succeeded.
std::string CublasLtVersion();

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_CUBLASLT_FUNCTIONS_H_
