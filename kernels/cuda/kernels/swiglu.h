// SwiGLU's arithmetic, one element at a time in float32, shared by all kernels that compute it, so
// that they give the same bits.
#ifndef TROUPE_KERNELS_CUDA_KERNELS_SWIGLU_H_
#define TROUPE_KERNELS_CUDA_KERNELS_SWIGLU_H_

#include "kernels/cuda/device_code/numbers.h"

namespace troupe::kernels::cuda {

// T: the element type of inputs and outputs, which determines the accuracy needed.
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
// The gradients of gate and up, where dy is the gradient of silu(gate)·up.
template <typename T>
TROUPE_DEVICE GatedGradient GatedGradientOf(float dy, float gate, float up) {
  const float sigmoid = Sigmoid<T>(gate);
  return {dy * up * sigmoid * (1.0f + gate * (1.0f - sigmoid)), dy * gate * sigmoid};
}

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_KERNELS_SWIGLU_H_
