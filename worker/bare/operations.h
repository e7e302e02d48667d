// Times every kind of operation of a preset's blocks on a GPU, alone, against what the same GPU reaches in a plain copy and
// in one large product.
#ifndef TROUPE_WORKER_BARE_OPERATIONS_H_
#define TROUPE_WORKER_BARE_OPERATIONS_H_

#include <cstdint>
#include <functional>
#include <string>

#include "base/status.h"
#include "kernels/cuda/chosen_attention.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/product_library.h"

namespace troupe {

struct OperationsOptions {
  std::string preset = "llama-124m";
  int64_t batch = 64;  // samples of a microbatch
  int64_t sequence = 1024;
  std::string dtype = "bfloat16";
  std::string float8 = "none";  // training.float8.recipe of a job file
  std::string only;  // a kind, as of OperationTime; empty: all
};

// What the device reaches when it does nothing else.
struct DevicePeak {
  double bytes_per_second = 0;  // read and written by a copy within its memory
  double flops = 0;             // floating-point operations per second of a product 8192³
};
// REQUIRES: memory for the operands. INTERNAL where `products` have none of that shape.
StatusOr<DevicePeak> MeasurePeak(kernels::cuda::CudaDevice& device, kernels::cuda::ProductLibrary& products,
                                 bool bfloat16);

struct OperationTime {
  std::string kind;    // "rms_norm_grad"; "quantize_of_swiglu" of what an operation makes itself
  std::string inputs;  // "[65536,768] [768]"
  double seconds = 0;  // of one, of many in a graph; 0 where it cannot be run
  double flops = 0;    // model FLOPs; 0 of what moves data
  double bytes = 0;    // that it reads and writes
  std::string skipped;  // why it cannot be run; else empty
};

// Tells `report` of each kind and shape, in the order of the program. Numbers that one run leaves are what the next reads,
// as far as they fit into the device's caches from there.
Status MeasureOperations(kernels::cuda::CudaDevice& device, kernels::CudaBackend& backend,
                         const OperationsOptions& options, const std::function<void(const OperationTime&)>& report);

struct AttentionTime {
  std::string pass;            // "forward", "gradient"
  std::string shape;           // "bfloat16 samples=64 tokens=1024 queries=12 keys=12 width=64"
  std::string implementation;  // of the library
  kernels::cuda::AttentionSeconds seconds;
};

// Tells `report` of the preset's attention by `library` beside our own kernels; of nothing where it has none of the shape.
Status MeasureAttention(kernels::cuda::CudaDevice& device, kernels::cuda::AttentionLibrary& library,
                        const OperationsOptions& options, const std::function<void(const AttentionTime&)>& report);

}  // namespace troupe

#endif  // TROUPE_WORKER_BARE_OPERATIONS_H_
