// Matmuls by a device library (cuBLASLt), each prepared once per shape. If a library does not
// support a shape, our own kernel is used, which counts as a fall-back.
#ifndef TROUPE_KERNELS_CUDA_RUNTIME_MATMUL_LIBRARY_H_
#define TROUPE_KERNELS_CUDA_RUNTIME_MATMUL_LIBRARY_H_

#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"
#include "kernels/backend/matmul_shape.h"
#include "kernels/cuda/runtime/device.h"

namespace troupe::kernels::cuda {

// Alignment of the matrices of a LibraryMatmul, in bytes.
inline constexpr uintptr_t kLibraryAlignment = 16;

// Scales of FP8 operands [lines, D], in device memory, aligned like the matrices: one per operand,
// or per block in cuBLASLt's layout (LibraryScales in kernels/cuda/kernels/quantize.h converts to
// it). Blocks of 1 x 128 elements: [⌈D/128⌉, lines]. Blocks of 128 x 128, for operand b of forward
// and of input gradient: [⌈lines/128⌉, ⌈D/128⌉ rounded up to a multiple of 4].
struct OperandScales {
  const float *a = nullptr, *b = nullptr;
};

// A prepared matmul of kernels/backend/matmul_shape.h with float32 accumulation. One thread at a
// time may use it.
class LibraryMatmul {
 public:
  virtual ~LibraryMatmul() = default;
  virtual int64_t workspace_bytes() const = 0;
  // The algorithm, for receipts.
  virtual std::string implementation() const = 0;
  // REQUIRES: a, b and c are aligned to kLibraryAlignment, and `workspace` to 256. `accumulate`
  // applies to weight gradients only.
  virtual Status Enqueue(const void* a, const void* b, void* c, bool accumulate, void* workspace,
                         Stream stream, const OperandScales& scales) = 0;
};

class MatmulLibrary {
 public:
  virtual ~MatmulLibrary() = default;
  // Returns null if the library has no algorithm for `shape`.
  virtual StatusOr<std::unique_ptr<LibraryMatmul>> Prepare(const MatmulShape& shape) = 0;
};

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_RUNTIME_MATMUL_LIBRARY_H_
