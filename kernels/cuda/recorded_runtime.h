// The functions of the CUDA runtime that CudaDevice calls, for tests on machines without a GPU: linked in the runtime's
// place, each writes down what it was asked and returns what the test wants. Nothing is computed.
#ifndef TROUPE_KERNELS_CUDA_RECORDED_RUNTIME_H_
#define TROUPE_KERNELS_CUDA_RECORDED_RUNTIME_H_

#include <cuda_runtime_api.h>

#include <map>
#include <string>
#include <vector>

namespace troupe::kernels::cuda {

struct RecordedRuntime {
  int driver_version = 13000;
  cudaError_t count_error = cudaSuccess;
  int devices = 2;
  int capability_major = 9, capability_minor = 0;
  int dynamic_shared_bytes = 48 << 10;  // that a kernel may have unasked
  std::map<std::string, cudaError_t> fails;  // by function, until it is taken out
  int not_ready = 0;                         // so many questions find an event or a stream not ready; -1: all do
  // "cudaMalloc 100": of calls that change something, with what matters of their arguments.
  std::vector<std::string> calls;

  // The calls since the last Take.
  std::vector<std::string> Take();
};

// Of this process; a test begins with a fresh one.
RecordedRuntime& Runtime();

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_RECORDED_RUNTIME_H_
