// The router's matmul and its gradients. The summation order of a logit does not depend on the
// number of rows, so that a token chooses the same experts in any microbatch and layout.
#include "kernels/cpu/level_target.h"

namespace troupe::kernels::cpu::TROUPE_LEVEL_NAMESPACE {

template <typename T>
void RouterLogits(const RouterLogitsArgs& args, int thread, int threads) {
  const Part part = PartOf(args.rows, thread, threads);
  for (int64_t r = part.begin; r < part.end; ++r) {
    const T* x = static_cast<const T*>(args.x) + r * args.hidden;
    for (int64_t e = 0; e < args.experts; ++e) {
      const float* w = args.w + e * args.hidden;
      F32 sums[2] = {};
      for (int64_t h = 0; h < args.hidden; h += kLanes) {
        const int64_t count = args.hidden - h;
        sums[h / kLanes & 1] += LoadUpTo(x + h, count) * LoadUpTo(w + h, count);
      }
      args.logits[r * args.experts + e] = ReduceAdd(sums[0] + sums[1]);
    }
  }
}

template <typename T>
void RouterLogitsGradInput(const RouterLogitsGradInputArgs& args, int thread, int threads) {
  const Part part = PartOf(args.rows, thread, threads);
  for (int64_t r = part.begin; r < part.end; ++r) {
    const float* dlogits = args.dlogits + r * args.experts;
    T* dx = static_cast<T*>(args.dx) + r * args.hidden;
    for (int64_t h = 0; h < args.hidden; h += kLanes) {
      const int64_t count = args.hidden - h;
      F32 sum = {};
      for (int64_t e = 0; e < args.experts; ++e) {
        sum += dlogits[e] * LoadUpTo(args.w + e * args.hidden + h, count);
      }
      StoreUpTo(dx + h, count, sum);
    }
  }
}

// Each thread owns a range of columns and adds the rows to it in order.
template <typename T>
void RouterLogitsGradWeight(const RouterLogitsGradWeightArgs& args, int thread, int threads) {
  const Part columns = PartOf(args.hidden, thread, threads, kLanes);
  for (int64_t h = columns.begin; h < columns.end; h += kLanes) {
    const int64_t count = columns.end - h;
    for (int64_t e = 0; e < args.experts; ++e) {
      float* dw = args.dw + e * args.hidden + h;
      F32 sum = args.accumulate ? LoadUpTo(dw, count) : F32{};
      for (int64_t r = 0; r < args.rows; ++r) {
        sum += args.dlogits[r * args.experts + e] *
               LoadUpTo(static_cast<const T*>(args.x) + r * args.hidden + h, count);
      }
      StoreUpTo(dw, count, sum);
    }
  }
}

template void RouterLogits<float>(const RouterLogitsArgs&, int, int);
template void RouterLogits<BFloat16>(const RouterLogitsArgs&, int, int);
template void RouterLogitsGradInput<float>(const RouterLogitsGradInputArgs&, int, int);
template void RouterLogitsGradInput<BFloat16>(const RouterLogitsGradInputArgs&, int, int);
template void RouterLogitsGradWeight<float>(const RouterLogitsGradWeightArgs&, int, int);
template void RouterLogitsGradWeight<BFloat16>(const RouterLogitsGradWeightArgs&, int, int);

}  // namespace troupe::kernels::cpu::TROUPE_LEVEL_NAMESPACE

#include "kernels/cpu/level_end.h"
