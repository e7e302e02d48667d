// SwiGLU's arithmetic, an element at a time in float32, for every kernel that makes it: the same bits from each.
#ifndef TROUPE_KERNELS_CUDA_SWIGLU_H_
#define TROUPE_KERNELS_CUDA_SWIGLU_H_

#include "kernels/cuda/numbers.h"

namespace troupe::kernels::cuda {

// T: what is read and made, which says how exact it need be.
template <typename T>
TROUPE_DEVICE float Sigmoid(float x) {
  return Reciprocal<T>(1.0f + Exp<T>(-x));
}

// silu(gate)·up.
template <typename T>
TROUPE_DEVICE float GatedOf(float gate, float up) {
  return gate * Sigmoid<T>(gate) * up;
}

struct GatedGradient {
  float gate, up;
};
// Of gate and up where silu(gate)·up has gradient dy.
template <typename T>
TROUPE_DEVICE GatedGradient GatedGradientOf(float dy, float gate, float up) {
  const float sigmoid = Sigmoid<T>(gate);
  return {dy * up * sigmoid * (1.0f + gate * (1.0f - sigmoid)), dy * gate * sigmoid};
}

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_SWIGLU_H_
