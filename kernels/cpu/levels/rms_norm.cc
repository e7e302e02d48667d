// RMSNorm, alone or after a residual sum, and its gradient plus the residual's gradient. Each makes
// one pass over rows that stay in the L1 cache.
#include "kernels/cpu/level_target.h"

namespace troupe::kernels::cpu::TROUPE_LEVEL_NAMESPACE {

template <typename T>
void RmsNorm(const RmsNormArgs& args, int thread, int threads) {
  const Part part = PartOf(args.rows, thread, threads);
  const int64_t hidden = args.hidden;
  for (int64_t r = part.begin; r < part.end; ++r) {
    const T* x = static_cast<const T*>(args.a) + r * hidden;
    T* y = static_cast<T*>(args.y) + r * hidden;
    F32 squares[2] = {};
    if (args.b != nullptr) {
      const T* b = static_cast<const T*>(args.b) + r * hidden;
      T* sum = static_cast<T*>(args.sum) + r * hidden;
      for (int64_t h = 0; h < hidden; h += kLanes) {
        const int64_t count = hidden - h;
        StoreUpTo(sum + h, count, LoadUpTo(x + h, count) + LoadUpTo(b + h, count));
        const F32 rounded = LoadUpTo(sum + h, count);  // the norm of the rounded sum that is stored
        squares[h / kLanes & 1] += rounded * rounded;
      }
      x = sum;
    } else {
      for (int64_t h = 0; h < hidden; h += kLanes) {
        const F32 v = LoadUpTo(x + h, hidden - h);
        squares[h / kLanes & 1] += v * v;
      }
    }
    const float mean = ReduceAdd(squares[0] + squares[1]) / static_cast<float>(hidden);
    const float rstd = 1.0f / __builtin_sqrtf(mean + args.eps);
    args.rstd[r] = rstd;
    for (int64_t h = 0; h < hidden; h += kLanes) {
      const int64_t count = hidden - h;
      StoreUpTo(y + h, count, LoadUpTo(x + h, count) * rstd * LoadUpTo(args.w + h, count));
    }
  }
}

// dx = rstd·(g - x·rstd²·mean(g·x)) + dres with g = dy·w. Sums this thread's part of dw into its
// row of `partial`.
template <typename T>
void RmsNormGrad(const RmsNormGradArgs& args, int thread, int threads) {
  const Part part = PartOf(args.rows, thread, threads);
  const int64_t hidden = args.hidden;
  float* partial = args.partial + thread * hidden;
  std::memset(partial, 0, hidden * sizeof(float));
  for (int64_t r = part.begin; r < part.end; ++r) {
    const T* dy = static_cast<const T*>(args.dy) + r * hidden;
    const T* x = static_cast<const T*>(args.x) + r * hidden;
    const T* dres = args.dres != nullptr ? static_cast<const T*>(args.dres) + r * hidden : nullptr;
    T* dx = static_cast<T*>(args.dx) + r * hidden;
    const float rstd = args.rstd[r];
    F32 dots[2] = {};
    for (int64_t h = 0; h < hidden; h += kLanes) {
      const int64_t count = hidden - h;
      const F32 dy_x = LoadUpTo(dy + h, count) * LoadUpTo(x + h, count);
      dots[h / kLanes & 1] += dy_x * LoadUpTo(args.w + h, count);
      StoreUpTo(partial + h, count, LoadUpTo(partial + h, count) + dy_x * rstd);
    }
    const float shift = rstd * rstd * ReduceAdd(dots[0] + dots[1]) / static_cast<float>(hidden);
    for (int64_t h = 0; h < hidden; h += kLanes) {
      const int64_t count = hidden - h;
      const F32 g = LoadUpTo(dy + h, count) * LoadUpTo(args.w + h, count);
      F32 v = rstd * (g - LoadUpTo(x + h, count) * shift);
      if (dres != nullptr) v += LoadUpTo(dres + h, count);
      StoreUpTo(dx + h, count, v);
    }
  }
}

void RmsNormGradFinish(const RmsNormGradArgs& args, int thread, int threads) {
  const Part columns = PartOf(args.hidden, thread, threads, kLanes);
  for (int64_t h = columns.begin; h < columns.end; h += kLanes) {
    const int64_t count = columns.end - h;
    F32 sum = args.accumulate ? LoadUpTo(args.dw + h, count) : F32{};
    for (int t = 0; t < threads; ++t) sum += LoadUpTo(args.partial + t * args.hidden + h, count);
    StoreUpTo(args.dw + h, count, sum);
  }
}

template void RmsNorm<float>(const RmsNormArgs&, int, int);
template void RmsNorm<BFloat16>(const RmsNormArgs&, int, int);
template void RmsNormGrad<float>(const RmsNormGradArgs&, int, int);
template void RmsNormGrad<BFloat16>(const RmsNormGradArgs&, int, int);

}  // namespace troupe::kernels::cpu::TROUPE_LEVEL_NAMESPACE

#include "kernels/cpu/level_end.h"
