// The three products of a linear layer (kernels/product_shape.h) on oneDNN, each prepared once for its shape and threads.
//
// float32 goes to the library's sgemm, which takes all three with and without accumulation at the
// same speed as its inner product. bfloat16 goes to inner_product on row-major weights; its weight
// gradient cannot accumulate, so that accumulation packs x and uses matmul with a sum. Where the
// library has no bfloat16 (below AVX-512) the operands are widened block by block for sgemm.
#ifndef TROUPE_KERNELS_CPU_MATMUL_H_
#define TROUPE_KERNELS_CPU_MATMUL_H_

#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"
#include "kernels/cpu/kernels.h"
#include "kernels/product_shape.h"

namespace troupe::kernels::cpu {

// A prepared product; used by one thread at a time.
class Product {
 public:
  virtual ~Product() = default;

  // Bytes of scratch that Run needs.
  virtual int64_t scratch_bytes() const = 0;
  // The library's name of what it runs ("x64:gemm:jit"); names of slow reference code begin with
  // "ref".
  virtual std::string implementation() const = 0;
  // Whether operands are multiplied as float32, whatever the shape says.
  virtual bool is_float32() const = 0;
  // `accumulate`: of weight gradients only. INTERNAL where the library fails.
  virtual Status Run(const void* a, const void* b, void* c, bool accumulate, char* scratch) = 0;
};

// The float32 product of `shape`, which need not be prepared.
Status Float32Rows(const ProductShape& shape, const void* a, const void* b, void* c,
                   bool accumulate);

// INTERNAL names the shape that the library refuses.
StatusOr<std::unique_ptr<Product>> PrepareProduct(const ProductShape& shape, Level level,
                                                  int threads);

// Keeps the library's own code at or below `level` in the whole process. FAILED_PRECONDITION once
// it has run.
Status LimitLibrary(Level level);

}  // namespace troupe::kernels::cpu

#endif  // TROUPE_KERNELS_CPU_MATMUL_H_
