// Replaces the CUDA runtime functions that CudaDevice calls, for tests on machines without a GPU.
// Linked in place of the runtime, each function records its call and returns what the test
// specifies. Nothing is computed.
#ifndef TROUPE_KERNELS_CUDA_RUNTIME_RECORDED_RUNTIME_H_
#define TROUPE_KERNELS_CUDA_RUNTIME_RECORDED_RUNTIME_H_

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
  int dynamic_shared_bytes = 48 << 10;       // that a kernel may use without asking
  std::map<std::string, cudaError_t> fails;  // results by function, until removed
  int not_ready = 0;                         // number of polls that return "not ready"; -1: all
  // "cudaMalloc 100": calls that change state, with their relevant arguments.
  std::vector<std::string> calls;

  // Returns the calls since the last DrainCalls.
  std::vector<std::string> DrainCalls();
};

// The instance of this process; each test starts with a fresh one.
RecordedRuntime& Runtime();

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_RUNTIME_RECORDED_RUNTIME_H_
