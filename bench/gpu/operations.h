// Times every kind of operation of a preset's blocks on a GPU, alone, and compares it with what the
// same GPU attains in a plain copy and in one large matmul.
#ifndef TROUPE_BENCH_GPU_OPERATIONS_H_
#define TROUPE_BENCH_GPU_OPERATIONS_H_

#include <cstdint>
#include <functional>
#include <string>

#include "base/status.h"
#include "kernels/cuda/libraries/tuned_attention.h"
#include "kernels/cuda/runtime/cuda_backend.h"
#include "kernels/cuda/runtime/cuda_device.h"
#include "kernels/cuda/runtime/matmul_library.h"

namespace troupe {

struct OperationsOptions {
  std::string preset = "llama-124m";
  int64_t batch = 64;  // samples of a microbatch
  int64_t sequence = 1024;
  std::string dtype = "bfloat16";
  std::string float8 = "none";  // training.float8.recipe of a job file
  std::string only;             // a kind, as in OperationTime; empty: all
};

// The peak rates that the device attains when it does nothing else.
struct DevicePeak {
  double bytes_per_second = 0;  // read and written by a copy within device memory
  double flops = 0;             // floating-point operations per second of an 8192³ matmul
};
// REQUIRES: memory for the operands. Returns INTERNAL if `matmuls` has no matmul of that shape.
StatusOr<DevicePeak> MeasurePeak(kernels::cuda::CudaDevice& device,
                                 kernels::cuda::MatmulLibrary& matmuls, bool bfloat16);

struct OperationTime {
  // "rms_norm_grad"; "quantize_of_swiglu" if the quantisation computes its source itself.
  std::string kind;
  std::string inputs;   // "[65536,768] [768]"
  double seconds = 0;   // for one run among many in a graph; 0 if it cannot be run
  double flops = 0;     // model FLOPs; 0 if it only moves data
  double bytes = 0;     // bytes that it reads and writes
  std::string skipped;  // the reason why it cannot be run; else empty
};

// Reports each kind and shape to `report`, in the order of the program. Each run reads the data
// left by the previous one, from the device's caches as far as they fit.
Status MeasureOperations(kernels::cuda::CudaDevice& device, kernels::CudaBackend& backend,
                         const OperationsOptions& options,
                         const std::function<void(const OperationTime&)>& report);

struct AttentionTime {
  std::string pass;            // "forward", "gradient"
  std::string shape;           // "bfloat16 samples=64 tokens=1024 queries=12 keys=12 width=64"
  std::string implementation;  // the library's implementation
  kernels::cuda::AttentionSeconds seconds;
};

// Reports the times of the preset's attention by `library` and by our own kernels to `report`;
// reports nothing if the library does not support the shape.
Status MeasureAttention(kernels::cuda::CudaDevice& device, kernels::cuda::AttentionLibrary& library,
                        const OperationsOptions& options,
                        const std::function<void(const AttentionTime&)>& report);

}  // namespace troupe

#endif  // TROUPE_BENCH_GPU_OPERATIONS_H_
