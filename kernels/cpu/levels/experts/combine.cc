// y[r] = Σ_j weights[r,j]·x[slots[r,j]] and its gradients; assignments without a slot contribute
// nothing.
#include "kernels/cpu/level_target.h"

namespace troupe::kernels::cpu::TROUPE_LEVEL_NAMESPACE {

template <typename T>
void Combine(const CombineArgs& args, int thread, int threads) {
  const Part part = PartOf(args.rows, thread, threads);
  for (int64_t r = part.begin; r < part.end; ++r) {
    const int32_t* slots = args.slots + r * args.top_k;
    T* y = static_cast<T*>(args.y) + r * args.hidden;
    for (int64_t h = 0; h < args.hidden; h += kLanes) {
      const int64_t count = args.hidden - h;
      F32 sum = {};
      for (int64_t j = 0; j < args.top_k; ++j) {
        if (slots[j] < 0) continue;
        const float weight = args.weights != nullptr ? args.weights[r * args.top_k + j] : 1.0f;
        sum += weight * LoadUpTo(static_cast<const T*>(args.x) + slots[j] * args.hidden + h, count);
      }
      StoreUpTo(y + h, count, sum);
    }
  }
}

template <typename T>
void CombineGrad(const CombineGradArgs& args, int thread, int threads) {
  const Part part = PartOf(args.rows, thread, threads);
  for (int64_t i = part.begin * args.top_k; i < part.end * args.top_k; ++i) {
    args.dweights[i] = 0;
    if (args.slots[i] < 0) continue;
    const T* dy = static_cast<const T*>(args.dy) + i / args.top_k * args.hidden;
    const T* x = static_cast<const T*>(args.x) + args.slots[i] * args.hidden;
    T* dx = static_cast<T*>(args.dx) + args.slots[i] * args.hidden;
    F32 dot = {};
    for (int64_t h = 0; h < args.hidden; h += kLanes) {
      const int64_t count = args.hidden - h;
      const F32 d = LoadUpTo(dy + h, count);
      dot += d * LoadUpTo(x + h, count);
      StoreUpTo(dx + h, count, d * args.weights[i]);
    }
    args.dweights[i] = ReduceAdd(dot);
  }
}

template void Combine<float>(const CombineArgs&, int, int);
template void Combine<BFloat16>(const CombineArgs&, int, int);
template void CombineGrad<float>(const CombineGradArgs&, int, int);
template void CombineGrad<BFloat16>(const CombineGradArgs&, int, int);

}  // namespace troupe::kernels::cpu::TROUPE_LEVEL_NAMESPACE

#include "kernels/cpu/level_end.h"
