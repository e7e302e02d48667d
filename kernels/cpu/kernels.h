// Our own vectorised kernels: plain functions on plain arrays, in one table per level.
//
// A kernel computes the part of thread `thread` of `threads` in a static partition, so that results
// may depend on the number of threads but never on timing. Kernels with a second phase (`…Finish`)
// combine in thread order what the threads of the first phase left in scratch; the second phase
// starts after all threads have finished the first. Kernels on elements of the compute dtype have
// one table entry per compute dtype. Thread-safe.
#ifndef TROUPE_KERNELS_CPU_KERNELS_H_
#define TROUPE_KERNELS_CPU_KERNELS_H_

#include <cstdint>

#include "kernels/backend/arguments.h"
#include "kernels/cpu/level.h"

namespace troupe::kernels::cpu {

// Table index of the compute dtype: 0 float32, 1 bfloat16.
inline constexpr int kComputeDTypes = 2;

// Conversions of bf16 rows to float32 and back, for matmuls where oneDNN has no bf16.
struct WidenArgs {
  const void* x;  // bf16
  float* y;
  int64_t count;
};
struct NarrowArgs {  // y[r, n] = x[r, n], rows of `width` elements, `stride` apart in y
  const float* x;
  void* y;  // bf16
  int64_t rows, width, stride;
};

// The shape that determines how many bytes of scratch a thread needs for attention forward or
// backward.
struct AttentionShape {
  int64_t tokens, head_dim;  // tokens: number of keys in a sample
  bool bfloat16, backward;
};

template <typename Args>
using Kernel = void (*)(const Args& args, int thread, int threads);
// A kernel of an optimizer: `args` has the numbers of the step, `of` the elements of one parameter.
template <typename Args>
using UpdateKernel = void (*)(const Args& args, const UpdateArgs& of, int thread, int threads);

// The kernels of the kinds that op_kinds.def lists as TYPED or PLAIN, then those that
// Preparation::MakeKind of other kinds uses.
struct KernelTable {
#define TROUPE_CPU_TYPED(Kind, name) Kernel<Kind##Args> name[kComputeDTypes];
#define TROUPE_CPU_PLAIN(Kind, name) Kernel<Kind##Args> name;
#include "model/program/op_kinds.def"
  Kernel<RmsNormGradArgs> rms_norm_grad[kComputeDTypes];
  Kernel<RmsNormGradArgs> rms_norm_grad_finish;
  Kernel<CastArgs> cast;
  Kernel<RopeArgs> rope[kComputeDTypes];
  Kernel<AttentionArgs> attention[kComputeDTypes];
  Kernel<AttentionGradArgs> attention_grad[kComputeDTypes];
  Kernel<SumOfSquaresArgs> sum_of_squares;
  UpdateKernel<AdamWArgs> adamw;
  UpdateKernel<SgdArgs> sgd;
  Kernel<WidenArgs> widen;
  Kernel<NarrowArgs> narrow;
  int64_t (*attention_scratch_bytes)(const AttentionShape& shape);
};

// The kernels of the kinds that op_kinds.def lists as SERIAL: scalar float32 code for one thread,
// the same at every level.
#define TROUPE_CPU_SERIAL(Kind, name) void Kind(const Kind##Args& args, int thread, int threads);
#include "model/program/op_kinds.def"

// REQUIRES: level <= HighestLevel() if any of the functions is called.
const KernelTable& KernelsOf(Level level);

namespace portable {
const KernelTable& Kernels();
}
namespace avx2 {
const KernelTable& Kernels();
}
namespace avx512 {
const KernelTable& Kernels();
}
namespace avx512_bf16 {
const KernelTable& Kernels();
}

}  // namespace troupe::kernels::cpu

#endif  // TROUPE_KERNELS_CPU_KERNELS_H_
