// The three matmuls of a linear layer (kernels/backend/matmul_shape.h) on oneDNN, each prepared
// once for its shape and number of threads.
//
// float32 uses sgemm, which computes all three, with or without accumulation, as fast as
// inner_product. bfloat16 uses inner_product on row-major weights. Its weight gradient cannot
// accumulate, so accumulation packs x and uses matmul with a sum. Where oneDNN has no bfloat16
// (below AVX-512) the operands are widened block by block for sgemm.
#ifndef TROUPE_KERNELS_CPU_MATMUL_H_
#define TROUPE_KERNELS_CPU_MATMUL_H_

#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"
#include "kernels/backend/matmul_shape.h"
#include "kernels/cpu/kernels.h"

namespace troupe::kernels::cpu {

// A prepared matmul. One thread at a time may use it.
class Matmul {
 public:
  virtual ~Matmul() = default;

  // Bytes of scratch that Run needs.
  virtual int64_t scratch_bytes() const = 0;
  // oneDNN's name of the implementation ("x64:gemm:jit"); names of slow reference code begin with
  // "ref".
  virtual std::string implementation() const = 0;
  // Whether operands are multiplied as float32, regardless of the shape's dtype.
  virtual bool is_float32() const = 0;
  // `accumulate` applies to weight gradients only. Errors: INTERNAL if oneDNN fails.
  virtual Status Run(const void* a, const void* b, void* c, bool accumulate, char* scratch) = 0;
};

// The float32 matmul of `shape`, which needs no preparation.
Status Float32Rows(const MatmulShape& shape, const void* a, const void* b, void* c,
                   bool accumulate);

// Errors: INTERNAL, with the shape that oneDNN rejects.
StatusOr<std::unique_ptr<Matmul>> PrepareMatmul(const MatmulShape& shape, Level level, int threads);

// Limits oneDNN's code to `level` or below, for the whole process. Errors: FAILED_PRECONDITION if
// oneDNN has already run.
Status LimitLibrary(Level level);

}  // namespace troupe::kernels::cpu

#endif  // TROUPE_KERNELS_CPU_MATMUL_H_
