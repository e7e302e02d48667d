// y[r] = Σ_j weights[r,j]·x[slots[r,j]] and its gradients, one block per row; assignments without a
// slot contribute nothing.
#include "kernels/cuda/device_code/numbers.h"
#include "kernels/cuda/device_code/shapes.h"
#include "kernels/cuda/kernels/kernels.h"

namespace troupe::kernels::cuda {
namespace {

template <typename T, int N>
TROUPE_KERNEL void CombineKernel(CombineArgs args) {
  const int64_t row = BlockIndex().x;
  const int32_t* slots = args.slots + row * args.top_k;
  const float* weights = args.weights != nullptr ? args.weights + row * args.top_k : nullptr;
  for (int64_t h = int64_t{ThreadIndex()} * N; h < args.hidden; h += int64_t{BlockThreads()} * N) {
    float sums[N] = {};
    for (int64_t j = 0; j < args.top_k; ++j) {
      if (slots[j] < 0) continue;
      const auto x = Pack<T, N>::Load(static_cast<const T*>(args.x) + slots[j] * args.hidden + h);
      for (int k = 0; k < N; ++k) sums[k] += (weights != nullptr ? weights[j] : 1.0f) * x[k];
    }
    Pack<T, N> y;
    for (int k = 0; k < N; ++k) y.Set(k, sums[k]);
    y.Store(static_cast<T*>(args.y) + row * args.hidden + h);
  }
}

template <typename T, int N>
TROUPE_KERNEL void CombineGradKernel(CombineGradArgs args) {
  TROUPE_SHARED float shared[2][kWarp + 1];
  const int64_t row = BlockIndex().x;
  const T* dy = static_cast<const T*>(args.dy) + row * args.hidden;
  for (int64_t j = 0; j < args.top_k; ++j) {
    const int64_t assignment = row * args.top_k + j, slot = args.slots[assignment];
    float dot = 0;
    if (slot >= 0) {
      const float weight = args.weights[assignment];
      for (int64_t h = int64_t{ThreadIndex()} * N; h < args.hidden;
           h += int64_t{BlockThreads()} * N) {
        const auto d = Pack<T, N>::Load(dy + h);
        const auto x = Pack<T, N>::Load(static_cast<const T*>(args.x) + slot * args.hidden + h);
        Pack<T, N> dx;
        for (int k = 0; k < N; ++k) {
          dot += d[k] * x[k];
          dx.Set(k, d[k] * weight);
        }
        dx.Store(static_cast<T*>(args.dx) + slot * args.hidden + h);
      }
    }
    dot = BlockSum(dot, shared[j % 2]);
    if (ThreadIndex() == 0) args.dweights[assignment] = dot;
  }
}

template <typename T>
KernelLaunch CombineOf(const CombineArgs& args) {
  constexpr int kMany = kPack<T>;
  return Packs(args.hidden, sizeof(T), {args.x, args.y})
             ? MakeLaunch("combine", &CombineKernel<T, kMany>,
                          BlocksFor(args.rows, args.hidden / kMany), args)
             : MakeLaunch("combine", &CombineKernel<T, 1>, BlocksFor(args.rows, args.hidden), args);
}

template <typename T>
KernelLaunch CombineGradOf(const CombineGradArgs& args) {
  constexpr int kMany = kPack<T>;
  return Packs(args.hidden, sizeof(T), {args.dy, args.x, args.dx})
             ? MakeLaunch("combine_grad", &CombineGradKernel<T, kMany>,
                          BlocksFor(args.rows, args.hidden / kMany), args)
             : MakeLaunch("combine_grad", &CombineGradKernel<T, 1>,
                          BlocksFor(args.rows, args.hidden), args);
}

}  // namespace

KernelLaunch Combine(const CombineArgs& args, bool bfloat16) {
  return bfloat16 ? CombineOf<BFloat16>(args) : CombineOf<float>(args);
}

KernelLaunch CombineGrad(const CombineGradArgs& args, bool bfloat16) {
  return bfloat16 ? CombineGradOf<BFloat16>(args) : CombineGradOf<float>(args);
}

}  // namespace troupe::kernels::cuda
