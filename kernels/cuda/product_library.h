// Matrix products by a library of the device (cuBLASLt), each prepared once for its shape. Where a library has none for a
// shape, our own kernel makes it, which a plan counts as a fall-back.
#ifndef TROUPE_KERNELS_CUDA_PRODUCT_LIBRARY_H_
#define TROUPE_KERNELS_CUDA_PRODUCT_LIBRARY_H_

#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"
#include "kernels/cuda/device.h"
#include "kernels/product_shape.h"

namespace troupe::kernels::cuda {

// Of the matrices of a LibraryProduct, bytes.
inline constexpr uintptr_t kLibraryAlignment = 16;

// Of factors in 8 bits [lines, D], on the device, aligned as the matrices: one each, or by blocks as cuBLASLt has them
// (LibraryScales, kernels/cuda/quantize.h, brings them into that form): [⌈D/128⌉, lines] of 1 x 128 elements;
// [⌈lines/128⌉, ⌈D/128⌉ rounded up to a multiple of 4] of 128 x 128, which b of a forward product and of an input gradient has.
struct ProductScales {
  const float *a = nullptr, *b = nullptr;
};

// A prepared product of kernels/product_shape.h: float32 accumulation; used by one thread at a time.
class LibraryProduct {
 public:
  virtual ~LibraryProduct() = default;
  virtual int64_t workspace_bytes() const = 0;
  // The algorithm, for receipts.
  virtual std::string implementation() const = 0;
  // REQUIRES: a, b and c are aligned to kLibraryAlignment. `accumulate`: of weight gradients only. `workspace`: aligned to 256.
  virtual Status Enqueue(const void* a, const void* b, void* c, bool accumulate, void* workspace,
                         Stream stream, const ProductScales& scales) = 0;
};

class ProductLibrary {
 public:
  virtual ~ProductLibrary() = default;
  // Null where the library has no algorithm of `shape`.
  virtual StatusOr<std::unique_ptr<LibraryProduct>> Prepare(const ProductShape& shape) = 0;
};

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_PRODUCT_LIBRARY_H_
